#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan with which a job begins: the answer of make_plan (planner/make_plan.hpp).

#include "rheo/plan/plan.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct initial_plan {
    rheo::plan plan{};
    seconds time{};         ///< modelled, of a step
    bool degraded = false;  ///< fewer than failures + 1 pipelines

    friend bool operator==(initial_plan const&, initial_plan const&) = default;
};

}  // namespace rheo::inline v0
