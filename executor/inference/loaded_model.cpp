// SPDX-License-Identifier: Apache-2.0
#include "executor/inference/loaded_model.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/checkpoint_config.hpp"
#include "executor/checkpoint/huggingface/weights.hpp"
#include "rheo/model/state.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

bool is_huggingface_folder(fs::path const& path)
{
    std::error_code error;
    return fs::exists(path / "config.json", error) && !fs::exists(path / "manifest.json", error);
}

}  // namespace

loaded_model::loaded_model(fs::path const& path, model_grid grid, int threads, model_part const& part)
{
    if (is_huggingface_folder(path)) {
        huggingface_weights const weights{path};
        name_ = path.string();
        config_ = weights.config();
        training_tokens_ = config_.model.context;
        begin(model_grid::one, threads, part);
        for (auto const parameter : weights.parameters()) {
            if (wants(parameter, part)) {
                put(parameter, weights.values(parameter));
            }
        }
        return;
    }
    auto const found = find_checkpoint(path);
    for (auto const& message : found.skipped) {
        notes_.push_back("skipped: " + message);
    }
    auto const& from = *found.newest;
    name_ = from.folder().string();
    config_ = config_of(from);
    training_tokens_ = from.step().value == 0 ? config_.model.context : config_.train.microbatch.tokens;
    if (config_.train.dtype != stored_numbers::float32) {
        notes_.emplace_back("trained with train.dtype = bf16, computed here in fp32: losses differ in their last digits from those of the training");
    }
    begin(grid, threads, part);
    if (auto const error = from.load_error(info_); !error.empty()) {
        throw exit_error{exit_code::bad_data, error};
    }
    for (tensor_id t{0}; at(t) < info_.tensors.size(); ++t) {
        if (info_.tensors[at(t)].is_parameter && wants(t, part)) {
            put(t, from.read(info_.tensors[at(t)], tensor_role::parameter));
        }
    }
}

void loaded_model::begin(model_grid grid, int threads, model_part const& part)
{
    config_.train.dtype = stored_numbers::float32;
    config_.run.device = compute_device::cpu;
    config_.run.threads = threads > 0 ? threads : config_.run.threads;
    if (grid == model_grid::one) {
        config_.train.shards = 1;
    }
    model_ = running_model(config_);
    layers_ = layers_of(model_, part.number, part.count);
    info_ = state_of(model_);
    backend_ = std::make_unique<host_backend>(config_.run.threads, fp32);
    state_ = std::make_unique<resident_state>(info_, *backend_);
}

/// Whether a layer of the part uses a tensor.
bool loaded_model::wants(tensor_id t, model_part const& part) const
{
    layer_id const last{static_cast<int>(std::ssize(model_.layers)) - 1};
    return std::any_of(info_.uses.begin(), info_.uses.end(),
                       [&](auto const& use) { return use.tensor == t && (contains(layers_, use.layer) || (part.is_last() && use.layer == last)); });
}

void loaded_model::put(tensor_id t, std::vector<float> const& values)
{
    auto storage = empty_storage(backend_->own(), dtype::f32);
    storage.parameter.resize(values.size());
    std::copy(values.begin(), values.end(), storage.parameter.floats().begin());
    state_->put(t, std::move(storage), committed_roles::parameter);
}

}  // namespace rheo::inline v0
