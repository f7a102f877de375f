#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan with which a job begins: the answer of make_plan (planner/make_plan.hpp).

#include <string>
#include <vector>

#include "rheo/plan/plan.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// A plan that the planner compared with others: the best with this schedule and this tensor-parallel degree.
struct compared_plan {
    any_schedule schedule{};
    int degree = 1;           ///< ranks that share a stage; the largest if the request names one for each position
    seconds time{};           ///< modelled, of a step
    bytes fullest{};          ///< of the rank that holds most, as plan.memory_mib counts
    bool recomputes = false;  ///< activations
    bool degraded = false;    ///< fewer than failures + 1 pipelines
    std::string instead{};    ///< which order all pipelines run in place of the schedule, and why; empty if one runs the schedule
    std::string error{};      ///< if there is no plan

    friend bool operator==(compared_plan const&, compared_plan const&) = default;
};

struct initial_plan {
    rheo::plan plan{};
    seconds time{};                         ///< modelled, of a step
    bool degraded = false;                  ///< fewer than failures + 1 pipelines
    std::vector<compared_plan> compared{};  ///< this one first, then the others, the better one first; empty if the request leaves no choice

    friend bool operator==(initial_plan const&, initial_plan const&) = default;
};

}  // namespace rheo::inline v0
