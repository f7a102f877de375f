#pragma once
// SPDX-License-Identifier: Apache-2.0

// The clocks of a plan: every pipeline has a frontier of its own, all end their step together, and each runs at the
// least energy for that common time. The profile is by layer, so one serves the plans of every number of survivors. Ranks that share a stage have one clock.
// A pure function of plan, profile and request: computed ahead of time or at once, it is the same.
//
// A rank that is slower than it was measured makes the step longer, to T'. Then the others need not hurry, neither those of
// other pipelines nor its own neighbours: the frontier of its pipeline is made with its computations as long as they are; in
// the time that this adds it draws what a waiting device draws (Chung et al., Perseus, SOSP 2024, section 3.3, where the
// straggler's own pipeline is left as it is).

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rheo/energy/clocks/clock_plan.hpp"
#include "rheo/energy/clocks/straggler.hpp"
#include "rheo/energy/clocks/switching.hpp"
#include "rheo/energy/frontier/event_network.hpp"
#include "rheo/energy/frontier/frontier.hpp"
#include "rheo/energy/frontier/make_activity_network.hpp"
#include "rheo/energy/profile/profile.hpp"
#include "rheo/energy/profile/stage_profile.hpp"
#include "rheo/plan/pipeline_schedule.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/group_sharing.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// What clocks are chosen for.
struct clock_request {
    frontier_request costs;
    seconds deadline{};  ///< of a step; one that is earlier than the fastest plan asks for no loss of time
    switching_rule switching{};

    friend constexpr bool operator==(clock_request, clock_request) = default;
};

/// What the frontier of a pipeline follows from, besides profile and request.
struct pipeline_frontier_key {
    std::vector<layer_id> cuts;
    std::uint64_t program = 0;                 ///< program_digest
    std::vector<double> factors;               ///< of each position
    std::vector<std::pair<int, int>> sharing;  ///< of each stage: ranks, and shards of the one with most

    friend bool operator==(pipeline_frontier_key const&, pipeline_frontier_key const&) = default;
    friend auto operator<=>(pipeline_frontier_key const&, pipeline_frontier_key const&) = default;
};

/// The frontier of a pipeline of a plan with the options of its curves.
struct pipeline_frontier {
    frontier curve;
    std::vector<std::vector<clock_option>> options;  ///< curve -> what is behind it
};

/// Clocks for a plan.
struct chosen_clocks {
    clocks_of_rows clocks;
    seconds fastest;    ///< of a step with each computation at its fastest clock
    joules at_highest;  ///< that all ranks with a place draw in a step with all at the highest clock, until that one ends
    seconds time;       ///< of a step at these clocks
    joules energy;      ///< that all ranks with a place draw in it, waiting included
};

namespace detail {

constexpr double factor_of(array_view<slow_rank const> slow, rank_id rank)
{
    for (auto const& s : slow) {
        if (s.rank == rank) {
            return s.factor;
        }
    }
    return 1.0;
}

/// The stages' profile with rows of their own for positions that are groups, or slow, as they take now.
template <class OnlyWhenCalled = void>
profile with_own_positions(profile stages, pipeline_instance const& pipeline, array_view<double const> factors, group_exchanges const& exchanges,
                           watts blocking)
{
    auto const measured = stages.rows;
    auto const where = placement_of(pipeline);
    auto const chain = static_cast<std::size_t>(stage_count(pipeline.cuts));
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
        auto const position = where.positions[s];
        auto const factor = factors[static_cast<std::size_t>(position)];
        bool const is_again = s >= chain && where.positions[s % chain] == position;  // the same stage of the other copy of the model
        auto const sharing = sharing_of(pipeline, stage_id{static_cast<int>(s)}, exchanges);
        bool const is_alone = pipeline.stages[s].size() == 1;
        for (auto row : measured) {
            if (is_again || (is_alone && factor == 1.0) || at(row.stage) != s % chain || !is_compute(row.kind)) {
                continue;
            }
            if (!is_alone) {
                row = shared_by_group(row, sharing, blocking);
            }
            auto const more = (factor - 1.0) * row.time;
            row.rank = rank_id{position};
            row.time += more;
            row.energy += blocking * more;
            stages.rows.push_back(row);
        }
    }
    return stages;
}

/// The time from `from` to `to` at which pipelines that end together draw least: where one of their frontiers has a corner.
template <class OnlyWhenCalled = void>
seconds least_energy_time(array_view<pipeline_frontier const* const> pipelines, seconds from, seconds to)
{
    auto const energy_at = [&](seconds time) {
        joules sum{};
        for (auto const* p : pipelines) {
            sum += total_energy(p->curve, cost_within(p->curve, time), time);
        }
        return sum;
    };
    auto best = from;
    auto least = energy_at(from);
    auto const look_at = [&](seconds time) {
        if (time > from && time <= to) {
            if (auto const energy = energy_at(time); energy < least) {
                best = time;
                least = energy;
            }
        }
    };
    look_at(to);
    for (auto const* p : pipelines) {
        for (auto const& vertex : p->curve.vertices) {
            look_at(time_of(p->curve, vertex.time));
        }
    }
    return best;
}

/// What the pipeline computes in a whole step, its microbatches counted from 0: pipelines that are alike compute the same.
template <class OnlyWhenCalled = void>
program program_of_pipeline(plan const& p, std::size_t pipeline)
{
    std::vector<int> const share{static_cast<int>(p.work[pipeline].size())};
    return schedule_of(plan{.schedule = p.schedule, .pipelines = {p.pipelines[pipeline]}, .work = deal(share), .spares = {}, .slices = p.slices}, 0).compute;
}

}  // namespace detail

/// What a pipeline of the plan needs a frontier of. @pre the plan's schedule is known
template <class OnlyWhenCalled = void>
pipeline_frontier_key frontier_key_of(plan const& p, std::size_t pipeline, array_view<slow_rank const> slow, int grid = 1)
{
    auto const& instance = p.pipelines[pipeline];
    pipeline_frontier_key key{instance.cuts, program_digest(detail::program_of_pipeline(p, pipeline)), {}, {}};
    for (stage_id stage{0}; at(stage) < instance.stages.size(); ++stage) {
        auto const ranks = static_cast<int>(instance.stages[at(stage)].size());
        key.sharing.emplace_back(ranks, ranks == 1 ? 1 : static_cast<int>(group_of(instance, stage, grid).run(grid).count()));
    }
    for (auto const& group : groups_of(instance)) {
        auto slowest = detail::factor_of(slow, group.front());
        for (auto const rank : group) {
            slowest = std::max(slowest, detail::factor_of(slow, rank));
        }
        key.factors.push_back(slowest);
    }
    return key;
}

/// The frontier of one pipeline of a plan of whole steps, for times that others make longer, too. @param exchanges of the model, if ranks share stages
/// @pre the plan's schedule is known, `layers` has a stage for each layer and is not by rank. Cost: that of make_frontier.
template <class OnlyWhenCalled = void>
result<pipeline_frontier> make_pipeline_frontier(plan const& p, std::size_t pipeline, profile const& layers, clock_request const& request,
                                                 array_view<slow_rank const> slow, group_exchanges const& exchanges = {})
{
    auto const& instance = p.pipelines[pipeline];
    auto const key = frontier_key_of(p, pipeline, slow, exchanges.grid);
    auto const compute = detail::program_of_pipeline(p, pipeline);
    auto stages = profile_of_stages(layers, key.cuts);
    if (!stages) {
        return failure{stages.error()};
    }
    auto const measured = detail::with_own_positions(*std::move(stages), instance, key.factors, exchanges, request.costs.blocking);
    auto made = make_activity_network(make_event_network(array_view{&compute, 1}, {{transfer_times(measured, compute)}, {}}).network, measured, request.costs);
    if (!made) {
        return failure{made.error()};
    }
    auto const waiting = request.costs.blocking * static_cast<double>(ranks_of(instance).size());
    return pipeline_frontier{make_frontier(std::move(made->activities), waiting, frontier_begin::slowest), std::move(made->options)};
}

/// Clocks for pipelines that end a step together: at the request's deadline, but no later than where they draw least; and no earlier
/// than the slowest of their fastest plans. @pre a frontier per pipeline. Cost: that of round_to_clocks per pipeline, and of a look-up per corner.
template <class OnlyWhenCalled = void>
result<chosen_clocks> choose_clocks(array_view<pipeline_frontier const* const> pipelines, clock_request const& request)
{
    chosen_clocks chosen{};
    for (auto const* p : pipelines) {
        chosen.fastest = std::max(chosen.fastest, fastest_time(p->curve));
    }
    auto wanted = chosen.fastest;
    if (request.deadline > wanted) {
        wanted = detail::least_energy_time(pipelines, wanted, request.deadline);
    }
    joules cost{};
    watts waiting{};
    joules highest{};
    seconds end_of_highest{};
    auto const waits = pipelines.size() > 1 ? waiting_until::deadline : waiting_until::own_end;
    for (auto const* p : pipelines) {
        auto const real = round_to_clocks(p->curve, p->options, request.costs.blocking, wanted, request.switching, waits);
        if (!real) {
            return failure{real.error()};
        }
        chosen.time = std::max(chosen.time, real->time);
        cost += in_joules(real->cost);
        waiting += p->curve.waiting;
        auto& rows = chosen.clocks.emplace_back(static_cast<std::size_t>(p->curve.activities.network.rows));
        auto const at_highest = at_highest_clocks(p->curve.activities, p->options, request.costs.blocking);
        highest += in_joules(at_highest.cost);
        end_of_highest = std::max(end_of_highest, at_highest.time);
        for (std::size_t k = 0; k < real->options.size(); ++k) {
            rows[static_cast<std::size_t>(p->curve.activities.network.operations[k].row)].push_back(real->options[k].clock);
        }
    }
    chosen.at_highest = highest + waiting * end_of_highest;
    chosen.energy = cost + waiting * chosen.time;
    return chosen;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template result<pipeline_frontier> make_pipeline_frontier<>(plan const&, std::size_t, profile const&, clock_request const&, array_view<slow_rank const>,
                                                                   group_exchanges const&);
#endif

}  // namespace rheo::inline v0
