#pragma once
// SPDX-License-Identifier: Apache-2.0

// What each layer really takes here: its forward and backward on one process, with the backend, dtypes and microbatch
// shape of a run. Memory and messages are known from the model.

#include <vector>

#include "executor/config/config.hpp"
#include "executor/device/backend.hpp"
#include "rheo/model/model.hpp"
#include "rheo/partition/layer_profile.hpp"

namespace rheo::inline v0 {

/// The layers of the model, each on a stage of its own, `repeats` microbatches and one before them through all of them; a layer's time
/// is its least, until the backend is idle: what else runs on the machine only adds. Microbatches are taken whole, tokens are drawn. Holds the whole model's state.
/// @param backend the config's  @pre repeats >= 1
std::vector<layer_profile> measured_layers(model_description const& model, run_config const& config, compute_backend& backend, int repeats);

}  // namespace rheo::inline v0
