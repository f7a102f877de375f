#pragma once
// SPDX-License-Identifier: Apache-2.0

// From the plan to what its ranks interpret: per pipeline the schedule's compute program for its
// microbatches, lowered, with reductions. The same for whole steps, for what is left of a step after a
// loss, and, without reductions, for evaluation.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rheo/plan/pipeline_schedule.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/schedule/core/instruction.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/schedule/transform/recomputation.hpp"
#include "rheo/schedule/transform/reductions.hpp"
#include "rheo/topology/microbatch_work.hpp"

namespace rheo::inline v0 {

namespace detail {

/// How far the microbatches of a pipeline are from those of another one that does the same with its own; nothing where it does something else.
template <class OnlyWhenCalled = void>
std::optional<std::int32_t> distance_of_work(plan const& p, std::size_t from, std::size_t to)
{
    auto const& a = p.work[from];
    auto const& b = p.work[to];
    bool const is_alike = p.pipelines[from].cuts == p.pipelines[to].cuts && placement_of(p.pipelines[from]) == placement_of(p.pipelines[to]) &&
                          (!recomputes_stages(p) || recomputed_stages(p, from) == recomputed_stages(p, to));
    if (!is_alike || a.size() != b.size() || a.empty()) {
        return std::nullopt;
    }
    auto const distance = b.front().microbatch.value - a.front().microbatch.value;
    bool const is_same = std::equal(a.begin(), a.end(), b.begin(), [&](microbatch_work const& x, microbatch_work const& y) {
        return x.microbatch.value + distance == y.microbatch.value && x.deepest == y.deepest;
    });
    return is_same ? std::optional{distance} : std::nullopt;
}

/// The same program for microbatches that are so far from its own.
inline program with_microbatches_at(program p, std::int32_t distance)
{
    for (auto& row : p.rows) {
        for (auto& i : row) {
            i = of_later_items(i, distance * p.slices);
        }
    }
    return p;
}

template <class OnlyWhenCalled = void>
program program_of(plan const& p, std::size_t pipeline, std::vector<reduction_unit> const& units, int layers)
{
    auto const compute = schedule_of(p, pipeline).compute;
    auto const lowered = recomputes_stages(p) ? with_recomputation(lower(compute), recomputed_stages(p, pipeline)) : lower(compute);
    return with_reductions(lowered, units_of_stages(units, p.pipelines[pipeline].cuts, lowered.copies), layers);
}

}  // namespace detail

/// One lowered program per pipeline, with recomputation where the plan wants it and with reductions over `units`. Pipelines that do the same with their own
/// microbatches are made once. @pre the plan's schedule is known; units belong to a model of `layers` layers (none: no reductions)
template <class OnlyWhenCalled = void>
std::vector<program> programs_of(plan const& p, std::vector<reduction_unit> const& units, int layers)
{
    constexpr std::size_t most_kinds = 8;  // that a pipeline is compared with
    std::vector<program> programs;
    std::vector<std::size_t> kinds;  // the first pipeline of each
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        std::optional<std::int32_t> distance;
        for (auto kind = kinds.begin(); kind != kinds.end() && !distance; ++kind) {
            if (distance = detail::distance_of_work(p, *kind, i); distance) {
                programs.push_back(detail::with_microbatches_at(programs[*kind], *distance));
            }
        }
        if (!distance) {
            programs.push_back(detail::program_of(p, i, units, layers));
            if (kinds.size() < most_kinds) {
                kinds.push_back(i);
            }
        }
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
