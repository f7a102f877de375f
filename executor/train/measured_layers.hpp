#pragma once
// SPDX-License-Identifier: Apache-2.0

// What each layer really takes here: its forward and backward on one process, with the back end, dtypes and microbatch
// shape of a run. Memory and messages are known from the model.

#include <vector>

#include "executor/config/config.hpp"
#include "executor/device/back_end.hpp"
#include "rheo/model/model.hpp"
#include "rheo/partition/layer_profile.hpp"

namespace rheo::inline v0 {

/// The layers of the model, each on a stage of its own, `repeats` microbatches and one before them through all of them; a layer's time
/// is its least, until the back end is idle: what else runs on the machine only adds. Microbatches are taken whole, tokens are drawn. Holds the whole model's state.
/// @param on the config's back end  @pre repeats >= 1
std::vector<layer_profile> measured_layers(model_description const& model, run_config const& config, back_end& on, int repeats);

}  // namespace rheo::inline v0
