#pragma once
// SPDX-License-Identifier: Apache-2.0

// Parameters under the names and shapes of Hugging Face's classes. A GPT-2's are ours (Conv1D weights are in x out, c_attn is merged). The families with
// a Llama's layers have a matrix for each of q, k and v, and of gate and value, as out x in; here each group is one matrix, in x out.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "executor/config/config.hpp"
#include "rheo/tensor/box.hpp"
#include "rheo/tensor/collection.hpp"

namespace rheo::inline v0 {

/// A tensor of a Hugging Face model: a box of one of ours.
struct huggingface_tensor {
    std::string name;
    std::vector<std::int64_t> shape;  ///< in files
    index_box box;                    ///< of ours
    bool transposed = false;          ///< columns of ours are rows in files

    friend bool operator==(huggingface_tensor const&, huggingface_tensor const&) = default;
};

/// The tensors as which a parameter of the config's model is exchanged, in the order of its columns.
std::vector<huggingface_tensor> huggingface_tensors(tensor_info const& parameter, run_config const& config);

/// The values of one, as files have them, out of the whole parameter's.
std::vector<float> values_in_file(huggingface_tensor const& tensor, tensor_shape parameter, std::span<float const> values);

/// Puts values of a file where they belong in the whole parameter. @pre as many as the tensor has
void put_values(huggingface_tensor const& tensor, tensor_shape parameter, std::span<float const> from_file, std::span<float> values);

}  // namespace rheo::inline v0
