#pragma once
// SPDX-License-Identifier: Apache-2.0

// A model with its parameters in this process, all or those of a part, in fp32 and without moments: what `rheo evaluate` and `rheo generate` compute with.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "executor/config/config.hpp"
#include "executor/host/backend.hpp"
#include "executor/inference/model_part.hpp"
#include "executor/state/resident_state.hpp"
#include "rheo/model/model.hpp"
#include "rheo/tensor/collection.hpp"

namespace rheo::inline v0 {

/// On which grid of shards the model is computed.
enum class model_grid : std::uint8_t {
    of_run,  ///< as it was trained: with the bits of its evaluations
    one,     ///< whole layers
};

class loaded_model {
public:
    /// @param path a run folder (its newest checkpoint), a checkpoint, or a Hugging Face folder
    /// @param threads 0: as the config says  @param part whose parameters are loaded; a part of several has a grid of one
    /// @throws exit_error naming the file
    loaded_model(std::filesystem::path const& path, model_grid grid, int threads = 0, model_part const& part = {});

    std::string const& name() const { return name_; }  ///< the folder with the parameters
    run_config const& config() const { return config_; }
    model_description const& model() const { return model_; }
    collection const& info() const { return info_; }
    host_backend& backend() const { return *backend_; }
    resident_state& state() const { return *state_; }
    std::int64_t context() const { return config_.model.context; }
    std::int64_t vocabulary() const { return config_.model.vocabulary; }
    layer_span layers() const { return layers_; }  ///< that were loaded, without the last one of the model
    /// Tokens of a sequence as it was trained with; of imported weights, which say none, the context.
    std::int64_t training_tokens() const { return training_tokens_; }
    std::vector<std::string> const& notes() const { return notes_; }  ///< what a user should know of how it was loaded

private:
    std::string name_;
    run_config config_;
    model_description model_;
    collection info_;
    std::unique_ptr<host_backend> backend_;
    std::unique_ptr<resident_state> state_;
    layer_span layers_{};
    std::int64_t training_tokens_ = 0;
    std::vector<std::string> notes_;

    void begin(model_grid grid, int threads, model_part const& part);
    bool wants(tensor_id t, model_part const& part) const;
    void put(tensor_id t, std::vector<float> const& values);
};

}  // namespace rheo::inline v0
