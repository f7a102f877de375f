#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan: pipelines and their ranks, the schedule, and which microbatches each pipeline does. It is the
// one value that is made by planning, rehearsed by the simulator, run by the workers and drawn in the
// report. Every rank computes it from the same inputs, so there is no master; its digest shows it.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/model/recompute_level.hpp"
#include "rheo/partition/cuts.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/topology/microbatch_work.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Pipeline -> position -> the clock of each computation of that row of a whole step, in their order; 0 where none matters.
using clocks_of_rows = std::vector<std::vector<std::vector<megahertz>>>;

/// What ranks drop in the forward and recompute in the backward: stages as a whole, or layers by their level, never both.
struct plan_recompute {
    bool every_stage = false;                 ///< evicts activations and recomputes them, see schedule/transform/recomputation.hpp
    std::vector<std::vector<bool>> stages{};  ///< pipeline -> its stages that do; none: as every_stage says
    std::vector<std::vector<std::vector<recompute_level>>> levels{};  ///< pipeline -> position -> layer of the model, see plan/memory_plan.hpp; none: nothing

    friend constexpr bool operator==(plan_recompute const&, plan_recompute const&) = default;
};

struct plan {
    any_schedule schedule{};  ///< of all pipelines; files and messages have its name
    std::vector<pipeline_instance> pipelines;
    std::vector<std::vector<microbatch_work>> work;  ///< per pipeline, in the order in which it runs them
    std::vector<rank_id> spares;  ///< members without a place, ascending
    plan_recompute recompute{};
    clocks_of_rows clocks{};  ///< none: clocks are left alone, see planner/plan_clocks.hpp
    int slices = 1;  ///< of each microbatch along its sequence; every program is on this grid

    friend constexpr bool operator==(plan const&, plan const&) = default;
};

/// The place of a rank: its pipeline and position there, which is its row of the pipeline's program; `found` is false for spares.
struct plan_position {
    bool found = false;
    pipeline_id pipeline;
    int position = 0;

    friend constexpr bool operator==(plan_position, plan_position) = default;
};

/// Where a rank works.
template <class OnlyWhenCalled = void>
constexpr plan_position position_of(plan const& p, rank_id rank)
{
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const ranks = ranks_of(p.pipelines[i]);
        for (std::size_t k = 0; k < ranks.size(); ++k) {
            if (ranks[k] == rank) {
                return {true, pipeline_id{static_cast<int>(i)}, static_cast<int>(k)};
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
    auto const mix = [&](std::int64_t value) { sum.mix(value); };
    mix(static_cast<std::int64_t>(p.pipelines.size()));
    for (auto const& pipeline : p.pipelines) {
        mix(static_cast<std::int64_t>(pipeline.cuts.size()));
        for (auto const cut : pipeline.cuts) {
            mix(cut.value);
        }
        mix(static_cast<std::int64_t>(pipeline.stages.size()));
        for (auto const& stage : pipeline.stages) {
            mix(static_cast<std::int64_t>(stage.size()));
            for (auto const rank : stage) {
                mix(rank.value);
            }
        }
    }
    mix(static_cast<std::int64_t>(p.work.size()));
    for (auto const& list : p.work) {
        mix(static_cast<std::int64_t>(list.size()));
        for (auto const& w : list) {
            mix(w.microbatch.value);
            mix(w.deepest.value);
        }
    }
    mix(static_cast<std::int64_t>(p.spares.size()));
    for (auto const spare : p.spares) {
        mix(spare.value);
    }
    if (p.recompute.every_stage) {
        mix(1);
    }
    if (p.slices > 1) {
        mix(-p.slices);
    }
    for (auto const& stages : p.recompute.stages) {
        for (bool const marked : stages) {
            mix(marked ? 2 : 3);  // slices are below zero
        }
    }
    for (auto const& pipeline : p.recompute.levels) {
        mix(static_cast<std::int64_t>(pipeline.size()));
        for (auto const& layers : pipeline) {
            for (auto const how : layers) {
                mix(16 + static_cast<std::int64_t>(how));
            }
        }
    }
    if (!p.clocks.empty()) {
        mix(-1);
    }
    for (auto const& pipeline : p.clocks) {
        mix(static_cast<std::int64_t>(pipeline.size()));
        for (auto const& row : pipeline) {
            mix(static_cast<std::int64_t>(row.size()));
            for (auto const clock : row) {
                mix(static_cast<std::int64_t>(clock.count * 1e3));
            }
        }
    }
    return sum.value();
}

}  // namespace rheo::inline v0
