#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a job is about to do, in a few lines for the terminal.

#include <cstdint>
#include <string>
#include <vector>

#include "executor/config/config.hpp"
#include "rheo/model/model.hpp"
#include "rheo/plan/plan.hpp"

namespace rheo::inline v0 {

/// The model, a step, the plan, and the memory of the fullest rank against what it may take. @param training_tokens of the data  @param order dataset::order
/// @param is_new whether the job begins with its first step
std::vector<std::string> job_summary(plan const& p, model_description const& model, run_config const& config, std::int64_t training_tokens,
                                     std::string const& order, bool is_new);

}  // namespace rheo::inline v0
