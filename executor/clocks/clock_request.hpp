#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the config and the profile want of clocks, as the library takes it.

#include "executor/config/config.hpp"
#include "rheo/energy/profile/profile.hpp"
#include "rheo/planner/plan_clocks.hpp"

namespace rheo::inline v0 {

inline clock_request clock_request_of(power_config const& power, profile const& layers)
{
    return {.costs = {.blocking = blocking_of(layers, power.blocking)}, .deadline = power.deadline, .switching = {.latency = power.switch_latency}};
}

}  // namespace rheo::inline v0
