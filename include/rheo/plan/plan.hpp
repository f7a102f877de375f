#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan: pipelines and their ranks, the schedule, and which microbatches each pipeline does. It is the
// one value that is made by planning, rehearsed by the simulator, run by the workers and drawn in the
// report. Every rank computes it from the same inputs, so there is no master; its digest shows it.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rheo/model/recompute_level.hpp"
#include "rheo/partition/cuts.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/plan/optimizer_shards.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/tensor/mix_fields.hpp"
#include "rheo/topology/microbatch_work.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Pipeline -> position -> the clock of each computation of that row of a whole step, in their order; 0 where none matters.
using clocks_of_rows = std::vector<std::vector<std::vector<megahertz>>>;

using marks_of_stages = std::vector<std::vector<bool>>;                           ///< pipeline -> stage -> whether it is meant
using levels_of_layers = std::vector<std::vector<std::vector<recompute_level>>>;  ///< pipeline -> position -> layer of the model

/// What ranks drop in the forward and recompute in the backward: stages as a whole, or layers by their level, never both.
struct plan_recompute {
    bool every_stage = false;   ///< evicts activations and recomputes them, see schedule/transform/recomputation.hpp
    marks_of_stages stages{};   ///< those that do; none: as every_stage says
    levels_of_layers levels{};  ///< see plan/memory_plan.hpp; none: nothing is recomputed by layers

    friend constexpr bool operator==(plan_recompute const&, plan_recompute const&) = default;
};

struct plan {
    any_schedule schedule{};  ///< of all pipelines; files and messages have its name
    std::vector<pipeline_instance> pipelines;
    std::vector<std::vector<microbatch_work>> work;  ///< per pipeline, in the order in which it runs them
    std::vector<rank_id> spares;                     ///< members without a place, ascending
    plan_recompute recompute{};
    clocks_of_rows clocks{};       ///< none: clocks are left alone, see planner/plan_clocks.hpp
    int slices = 1;                ///< of each microbatch along its sequence; every program is on this grid
    optimizer_shards optimizer{};  ///< who keeps moments

    friend constexpr bool operator==(plan const&, plan const&) = default;
};

/// Every field with its name in plan.json, in the order of the file, and a value that is left out: the one list from which the digest, writing and
/// reading follow. Plan is plan or const.
template <class Plan, class Visit>
    requires std::same_as<std::remove_const_t<Plan>, plan>
constexpr void for_each_field(Plan& p, Visit&& visit)
{
    visit("schedule", p.schedule);
    visit("recompute", p.recompute.every_stage, false);
    visit("recomputed_stages", p.recompute.stages, marks_of_stages{});
    visit("recompute_levels", p.recompute.levels, levels_of_layers{});
    visit("slices", p.slices, 1);
    visit("pipelines", p.pipelines);
    visit("microbatches", p.work);
    visit("spares", p.spares);
    visit("clocks_MHz", p.clocks, clocks_of_rows{});
    visit("moment_copies", p.optimizer.copies, 0);
    visit("node_size", p.optimizer.node_size, 1);
}

/// The place of a rank: its pipeline, its position there, which is its row of the pipeline's program, and which member it is of the position's group;
/// `found` is false for spares.
struct plan_position {
    bool found = false;
    pipeline_id pipeline;
    int position = 0;
    int member = 0;

    friend constexpr bool operator==(plan_position, plan_position) = default;
};

/// Where a rank works.
template <class OnlyWhenCalled = void>
constexpr plan_position position_of(plan const& p, rank_id rank)
{
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const& stages = p.pipelines[i].stages;
        if (!std::any_of(stages.begin(), stages.end(), [&](auto const& group) { return std::find(group.begin(), group.end(), rank) != group.end(); })) {
            continue;
        }
        auto const groups = groups_of(p.pipelines[i]);
        for (std::size_t k = 0; k < groups.size(); ++k) {
            for (std::size_t m = 0; m < groups[k].size(); ++m) {
                if (groups[k][m] == rank) {
                    return {true, pipeline_id{static_cast<int>(i)}, static_cast<int>(k), static_cast<int>(m)};
                }
            }
        }
    }
    return {};
}

/// The layers of a rank, ascending; none for spares.
template <class OnlyWhenCalled = void>
constexpr std::vector<layer_span> layers_of(plan const& p, rank_id rank)
{
    auto const place = position_of(p, rank);
    if (!place.found) {
        return {};
    }
    return layers_of(p.pipelines[at(place.pipeline)], rank);
}

/// All ranks of a plan, spares among them, ascending.
template <class OnlyWhenCalled = void>
constexpr std::vector<rank_id> ranks_of(plan const& p)
{
    std::vector<rank_id> ranks = p.spares;
    for (auto const& pipeline : p.pipelines) {
        auto const here = ranks_of(pipeline);
        ranks.insert(ranks.end(), here.begin(), here.end());
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

/// Whole microbatches 0 .. dealt to pipelines in consecutive runs of the given lengths.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<microbatch_work>> deal(array_view<int const> shares)
{
    std::vector<std::vector<microbatch_work>> work;
    int next = 0;
    for (auto const share : shares) {
        work.emplace_back();
        for (int i = 0; i < share; ++i) {
            work.back().push_back({microbatch_id{next++}, layer_id{0}});
        }
    }
    return work;
}

/// The ranks of the stage that most ranks share.
template <class OnlyWhenCalled = void>
constexpr int largest_group(plan const& p)
{
    std::size_t largest = 1;
    for (auto const& pipeline : p.pipelines) {
        for (auto const& stage : pipeline.stages) {
            largest = std::max(largest, stage.size());
        }
    }
    return static_cast<int>(largest);
}

/// Whether several ranks share a stage somewhere.
template <class OnlyWhenCalled = void>
constexpr bool has_groups(plan const& p)
{
    return largest_group(p) > 1;
}

/// Whether any stage evicts activations and recomputes them.
constexpr bool recomputes_stages(plan const& p) { return p.recompute.every_stage || !p.recompute.stages.empty(); }

/// Which stages of a pipeline evict activations and recompute them, one mark per stage.
template <class OnlyWhenCalled = void>
constexpr std::vector<bool> recomputed_stages(plan const& p, std::size_t pipeline)
{
    auto const stages = p.pipelines[pipeline].stages.size();
    return pipeline < p.recompute.stages.size() ? p.recompute.stages[pipeline] : std::vector<bool>(stages, p.recompute.every_stage);
}

/// What the rank at a position drops of each layer of the model and recomputes; empty: nothing.
template <class OnlyWhenCalled = void>
constexpr array_view<recompute_level const> recompute_levels_at(plan const& p, plan_position place)
{
    auto const i = at(place.pipeline);
    auto const k = static_cast<std::size_t>(place.position);
    auto const& levels = p.recompute.levels;
    return i < levels.size() && k < levels[i].size() ? array_view<recompute_level const>{levels[i][k]} : array_view<recompute_level const>{};
}

/// A digest of everything in the plan; equal plans have equal digests.
template <class OnlyWhenCalled = void>
constexpr state_digest digest_of(plan const& p)
{
    sequence_digest sum{name_of(p.schedule)};
    for_each_field(p, [&](std::string_view name, auto const& member, auto const&... absent) {
        if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(member)>, any_schedule>) {
            if (!(... && (member == absent)) || sizeof...(absent) == 0) {
                sum.mix(static_cast<std::int64_t>(hash_text(name)));
                mix_fields(sum, member);
            }
        }
    });
    return sum.value();
}

}  // namespace rheo::inline v0
