#pragma once
// SPDX-License-Identifier: Apache-2.0

// Why a plan is as it is, for people: what bounds its step, and the plans that the planner compared with it.

#include <span>
#include <string>

#include "rheo/planner/initial_plan.hpp"
#include "rheo/planner/step_limits.hpp"

namespace rheo::inline v0 {

/// Table of what the step would take without each limit alone. @param source where times come from, as source_of(forecast) says
std::string format_limits(step_limits const& limits, std::string const& source);

/// Table of the best of the compared plans, the chosen one first; empty if there was no choice.
std::string format_comparison(std::span<compared_plan const> compared, std::string const& source);

}  // namespace rheo::inline v0
