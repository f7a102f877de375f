#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a run is made of, from its arguments alone: before anything is opened, agreed or allocated. Every rank comes to the same by itself.

#include <vector>

#include "executor/config/config.hpp"
#include "executor/config/inject.hpp"
#include "executor/train/run.hpp"
#include "executor/train/startup.hpp"
#include "rheo/model/model.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/tensor/collection.hpp"

namespace rheo::inline v0 {

/// What the arguments come to, alike on all ranks; or why no job begins with them.
struct job_setup {
    startup_error error{};
    run_config config{};  ///< as given, with the planner's choices
    std::vector<injected_fault> faults{};
    model_description runs{};
    collection state{};
    std::vector<reduction_unit> units{};
    plan first{};
};

/// @param launched the ranks there are at launch
job_setup prepare(model_description const& model, run_config const& given, run_options const& options, int launched);

}  // namespace rheo::inline v0
