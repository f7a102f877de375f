#pragma once
// SPDX-License-Identifier: Apache-2.0

// `rheo plan --json`: plan.json, which `rheo train --plan` reads, and under "forecast" what the plan leads to. Units are in the key names.

#include <string>

#include <nlohmann/json.hpp>

#include "rheo/plan/plan.hpp"
#include "rheo/planner/forecast.hpp"

namespace rheo::inline v0 {

nlohmann::ordered_json to_json(forecast const& f);

/// The plan as one JSON object, ended by a line's end.
std::string plan_as_json(plan const& p, forecast const& f);

}  // namespace rheo::inline v0
