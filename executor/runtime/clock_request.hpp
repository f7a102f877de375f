#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the config wants of clocks, as the library takes it.

#include "rheo/planner/plan_clocks.hpp"
#include "runtime/config.hpp"

namespace rheo::inline v0 {

inline clock_request clock_request_of(power_config const& power)
{
    return {.costs = {.blocking = {power.blocking_w}}, .deadline = {power.deadline_s}, .switching = {.latency = {power.switch_latency_s}}};
}

}  // namespace rheo::inline v0
