#pragma once
// SPDX-License-Identifier: Apache-2.0

// `rheo plan --json`: plan.json, which `rheo train --plan` reads, and under "forecast" what the plan leads to. Units are in the key names.

#include <string>

#include <nlohmann/json.hpp>

#include "rheo/plan/plan.hpp"
#include "rheo/planner/forecast.hpp"
#include "rheo/planner/initial_plan.hpp"
#include "rheo/planner/step_limits.hpp"

namespace rheo::inline v0 {

nlohmann::ordered_json to_json(forecast const& f);

/// The plan as one JSON object, ended by a line's end.
std::string plan_as_json(plan const& p, forecast const& f);

/// The same with what the planner compared and what bounds the step, under `compared` and `step_without_s` of the forecast.
std::string plan_as_json(initial_plan const& made, forecast const& f, step_limits const& limits);

}  // namespace rheo::inline v0
