#pragma once
// SPDX-License-Identifier: Apache-2.0

// A step rehearsed: the programs of all pipelines with their reductions, run on modelled time by the
// same interpretation that proves them, written down as the events that the executor would record.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/schedule/check/timeline.hpp"
#include "rheo/schedule/core/cost.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/transport.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// One pipeline of a rehearsal.
struct modelled_pipeline {
    rheo::program program;          ///< lowered, with its reductions
    std::vector<rank_id> ranks;     ///< position -> rank
    stage_costs costs;              ///< stage -> times
    std::vector<bytes> boundary{};  ///< stage -> message to the next one, of activations or their gradients; stages beyond the end: not known

    friend constexpr bool operator==(modelled_pipeline const&, modelled_pipeline const&) = default;
};

/// One attempt of a step, from `begin` on.
struct modelled_step {
    std::vector<modelled_pipeline> pipelines;
    std::vector<seconds> reductions;  ///< unit -> from its last post to its sum
    seconds decide;                   ///< the vote, after the last rank has come to it
    seconds update;
    generation_id generation;
    step_id step;
    attempt_id attempt;
    seconds begin;
    std::vector<bytes> sums{};  ///< unit -> what each of its holders sums; units beyond the end: not known

    friend constexpr bool operator==(modelled_step const&, modelled_step const&) = default;
};

namespace detail {

template <class OnlyWhenCalled = void>
std::vector<program> programs_of(modelled_step const& step)
{
    std::vector<program> programs;
    for (auto const& pipeline : step.pipelines) {
        expects(pipeline.ranks.size() == pipeline.program.rows.size(), "a rehearsed pipeline needs a rank for every row");
        programs.push_back(pipeline.program);
    }
    return programs;
}

template <class OnlyWhenCalled = void>
step_cost costs_of(modelled_step const& step)
{
    step_cost costs{{}, step.reductions};
    for (auto const& pipeline : step.pipelines) {
        costs.pipelines.push_back(pipeline.costs);
    }
    return costs;
}

template <class OnlyWhenCalled = void>
rank_id rank_of(modelled_step const& step, timed_row const& row)
{
    return step.pipelines[at(row.pipeline)].ranks[static_cast<std::size_t>(row.position)];
}

/// The rank that an instruction exchanges a message with, or gets its input from; none where that is at home.
template <class OnlyWhenCalled = void>
rank_id peer_of(modelled_pipeline const& pipeline, instruction i)
{
    auto const& placement = pipeline.program.placement;
    auto const chain = stages_per_copy(pipeline.program);
    auto const to = other_end_of(activity_of(i.kind));
    auto const place = i.stage % chain + to;
    if (to == 0 || place < 0 || place >= chain) {
        return no_rank;
    }
    auto const mine = placement[static_cast<std::size_t>(i.stage)];
    auto const other = placement[static_cast<std::size_t>(i.stage + to)];
    return other == mine ? no_rank : pipeline.ranks[static_cast<std::size_t>(other)];
}

/// How large a message is, or the sums of a reduction.
template <class OnlyWhenCalled = void>
bytes exchanged_bytes(modelled_step const& step, modelled_pipeline const& pipeline, instruction i)
{
    auto const in = [](std::vector<bytes> const& sizes, int place) {
        return place >= 0 && static_cast<std::size_t>(place) < sizes.size() ? sizes[static_cast<std::size_t>(place)] : bytes{};
    };
    if (is_reduction(i.kind)) {
        return in(step.sums, i.item);
    }
    return is_send(i.kind) || is_receive(i.kind) ? in(pipeline.boundary, i.stage + std::min(other_end_of(activity_of(i.kind)), 0)) : bytes{};
}

template <class OnlyWhenCalled = void>
void add_events(std::vector<trace_event>& events, modelled_step const& step, timed_row const& row)
{
    auto const& pipeline = step.pipelines[at(row.pipeline)];
    for (auto const& t : row.instructions) {
        if (is_event(t.instruction.kind)) {
            events.push_back({.rank = rank_of(step, row),
                              .activity = activity_of(t.instruction.kind),
                              .pipeline = row.pipeline,
                              .stage = stage_of(t.instruction),
                              .item = t.instruction.item,
                              .generation = step.generation,
                              .step = step.step,
                              .attempt = step.attempt,
                              .peer = peer_of(pipeline, t.instruction),
                              .start = step.begin + t.start,
                              .end = step.begin + t.end,
                              .size = exchanged_bytes(step, pipeline, t.instruction)});
        }
    }
}

inline trace_event phase_event(modelled_step const& step, rank_id rank, activity kind, seconds start, seconds end)
{
    return {.rank = rank, .activity = kind, .generation = step.generation, .step = step.step, .attempt = step.attempt, .start = start, .end = end};
}

/// The time from which a row has nothing to do.
template <class OnlyWhenCalled = void>
seconds end_of(timed_row const& row)
{
    return row.instructions.empty() ? seconds{0.0} : row.instructions.back().end;
}

}  // namespace detail

/// A rehearsed attempt: what happened, and when the last rank was through.
struct rehearsal {
    verdict sound;  ///< when not, the events end in the stuck state
    std::vector<trace_event> events;
    seconds end;
};

/// Rehearses one undisturbed attempt with its vote and update.
/// @pre ranks and costs for every pipeline
template <class Transport = nonblocking>
rehearsal rehearse_step(modelled_step const& step)
{
    auto const programs = detail::programs_of(step);
    auto const times = make_timeline<Transport>(programs, detail::costs_of(step));
    rehearsal result{times.sound, {}, step.begin};
    for (auto const& row : times.rows) {
        detail::add_events(result.events, step, row);
        result.end = std::max(result.end, step.begin + detail::end_of(row));
    }
    if (!times.sound.ok) {
        return result;
    }
    auto const voted = result.end + step.decide;
    for (auto const& row : times.rows) {
        auto const rank = detail::rank_of(step, row);
        result.events.push_back(detail::phase_event(step, rank, activity::decide, step.begin + detail::end_of(row), voted));
        result.events.push_back(detail::phase_event(step, rank, activity::update, voted, voted + step.update));
    }
    result.end = voted + step.update;
    return result;
}

}  // namespace rheo::inline v0
