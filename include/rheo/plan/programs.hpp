#pragma once
// SPDX-License-Identifier: Apache-2.0

// From the plan to what its ranks interpret: per pipeline the schedule's compute program for its
// microbatches, lowered, with reductions. The same for whole steps, for what is left of a step after a
// loss, and, without reductions, for evaluation.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/plan/pipeline_schedule.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/schedule/transform/recomputation.hpp"
#include "rheo/schedule/transform/reductions.hpp"

namespace rheo::inline v0 {

/// One lowered program per pipeline, with recomputation where the plan wants it and with reductions over `units`.
/// @pre the plan's schedule is known; units belong to a model of `layers` layers (none: no reductions)
template <class OnlyWhenCalled = void>
std::vector<program> programs_of(plan const& p, std::vector<reduction_unit> const& units, int layers)
{
    std::vector<program> programs;
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const compute = schedule_of(p, i).compute;
        auto const lowered = recomputes_stages(p) ? with_recomputation(lower(compute), recomputed_stages(p, i)) : lower(compute);
        programs.push_back(with_reductions(lowered, units_of_stages(units, p.pipelines[i].cuts, lowered.copies), layers));
    }
    return programs;
}

/// A digest of what ranks interpret, instruction by instruction: equal where a schedule of the same name is the same.
template <class OnlyWhenCalled = void>
constexpr state_digest digest_of(std::vector<program> const& programs)
{
    sequence_digest sum{"programs"};
    for (auto const& p : programs) {
        sum.mix(p.copies);
        sum.mix(p.slices);
        sum.mix(static_cast<std::int64_t>(p.placement.size()));
        for (int const position : p.placement) {
            sum.mix(position);
        }
        for (auto const& row : p.rows) {
            sum.mix(static_cast<std::int64_t>(row.size()));
            for (auto const& i : row) {
                sum.mix(static_cast<std::int64_t>(i.kind));
                sum.mix(i.stage);
                sum.mix(i.item);
            }
        }
    }
    return sum.value();
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template std::vector<program> programs_of<>(plan const&, std::vector<reduction_unit> const&, int);
#endif

}  // namespace rheo::inline v0
