#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a job knows of clocks: times and energies of its layers at each clock, and what clocks are chosen for.

#include "rheo/energy/profile/profile.hpp"
#include "rheo/planner/plan_clocks.hpp"

namespace rheo::inline v0 {

struct job_clocks {
    profile layers;                  ///< has a stage for each layer of the model
    clock_request request;           ///< with what a waiting device draws
    bool answers_slow_ranks = true;  ///< others run at the least energy for the time of a slow rank

    friend constexpr bool operator==(job_clocks const&, job_clocks const&) = default;
};

}  // namespace rheo::inline v0
