#pragma once
// SPDX-License-Identifier: Apache-2.0

// A Hugging Face folder as the parameters of the model that it describes.

#include <filesystem>
#include <utility>
#include <vector>

#include "executor/checkpoint/huggingface/tensors.hpp"
#include "executor/checkpoint/huggingface/weight_files.hpp"
#include "executor/config/config.hpp"
#include "rheo/tensor/collection.hpp"

namespace rheo::inline v0 {

class huggingface_weights {
public:
    /// Reads config.json and the headers of the weights, which have all parameters of the model and nothing that it does not have.
    /// @throws exit_error naming the file
    explicit huggingface_weights(std::filesystem::path const& folder);

    run_config const& config() const { return config_; }  ///< its model; the rest is as everywhere
    collection const& state() const { return state_; }    ///< of the whole model
    std::vector<tensor_id> parameters() const;            ///< ascending
    /// The values of one of them. @throws exit_error
    std::vector<float> values(tensor_id parameter) const;

    /// Where the values of a parameter come from.
    struct sources {
        tensor_id parameter;
        std::vector<std::pair<huggingface_tensor, weight_files::place>> parts;
    };

private:
    run_config config_;
    collection state_;
    weight_files files_;
    std::vector<sources> sources_;
};

}  // namespace rheo::inline v0
