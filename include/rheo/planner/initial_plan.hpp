#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan with which a job begins: the answer of make_plan (planner/make_plan.hpp).

#include <string>
#include <vector>

#include "rheo/plan/plan.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// A tensor-parallel degree that the planner tried.
struct tried_degree {
    int degree = 1;
    seconds time{};       ///< modelled, of a step
    std::string error{};  ///< if there is no plan

    friend bool operator==(tried_degree const&, tried_degree const&) = default;
};

struct initial_plan {
    rheo::plan plan{};
    seconds time{};                       ///< modelled, of a step
    bool degraded = false;                ///< fewer than failures + 1 pipelines
    std::vector<tried_degree> degrees{};  ///< that the planner compared; empty if the request set the degree

    friend bool operator==(initial_plan const&, initial_plan const&) = default;
};

}  // namespace rheo::inline v0
