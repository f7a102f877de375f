#pragma once
// SPDX-License-Identifier: Apache-2.0

// From the plan to what its ranks interpret: per pipeline the schedule's compute program for its
// microbatches, lowered, with reductions. The same for whole steps, for what is left of a step after a
// loss, and, without reductions, for evaluation.

#include <cstddef>
#include <vector>

#include "rheo/plan/plan.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/schedule/families.hpp"
#include "rheo/schedule/lowering.hpp"
#include "rheo/schedule/reductions.hpp"
#include "rheo/schedule/stage_work.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// One lowered program per pipeline, with reductions over `units`.
/// @pre the plan's schedule is known; units belong to a model of `layers` layers (none: no reductions)
inline std::vector<program> programs_of(plan const& p, std::vector<reduction_unit> const& units, int layers)
{
    auto const schedule = parse_schedule(p.schedule);
    expects(static_cast<bool>(schedule), "a plan names a schedule that is not known");
    std::vector<program> programs;
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const& cuts = p.pipelines[i].cuts;
        auto const work = to_stage_work(p.work[i], cuts);
        auto const lowered = lower(make_program(*schedule.schedule, static_cast<int>(cuts.size()) - 1, work));
        programs.push_back(with_reductions(lowered, units_of_stages(units, cuts), layers));
    }
    return programs;
}

}  // namespace rheo::inline v0
