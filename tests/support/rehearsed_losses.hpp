#pragma once
// SPDX-License-Identifier: Apache-2.0

// A step that loses ranks on the prover's timeline, without a network: a reference for played steps, and records for tests that read them. Up to the loss as planned; then the others go as far as they can
// without the lost ranks, until they hear of it; they finish the operation at hand, leave, and go
// through the phases of the recovery together. A further loss on the way begins the recovery again. What the
// survivors have finished is returned, so that the caller's planner can say what is missing, and the
// second part of the step is rehearsed by the same functions.
//
// A message posted before its sender was lost arrives; the model knows no torn messages.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "rheo/schedule/check/timeline.hpp"
#include "rheo/simulate/cluster/recovery_times.hpp"
#include "rheo/simulate/loss.hpp"
#include "rheo/simulate/step.hpp"
#include "rheo/topology/microbatch_set.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace test {

using namespace rheo;

/// The microbatches whose backward a survivor has finished on a stage.
struct finished_work {
    rank_id rank;
    pipeline_id pipeline;
    stage_id stage;
    microbatch_set microbatches;

    friend bool operator==(finished_work const&, finished_work const&) = default;
};

/// A step up to the end of the recovery.
struct interrupted_step {
    std::vector<trace_event> events;
    std::vector<finished_work> finished;  ///< of survivors only, in the order of their rows; empty sets included
    std::vector<rank_id> survivors;       ///< ascending
    generation_id generation;             ///< the one that continues
    seconds end;                          ///< when it continues
};

namespace on_timeline {

inline bool is_lost(array_view<modelled_loss const> losses, rank_id rank)
{
    return std::any_of(losses.begin(), losses.end(), [&](auto const& l) { return l.rank == rank; });
}

/// How many instructions each row completes before its own rank is lost, in a run without other losses.
/// Earlier losses only delay a row, so the losses are taken in turn.
template <class Transport>
timeline timeline_with_losses(modelled_step const& step, array_view<modelled_loss const> losses, array_view<program const> programs)
{
    auto const costs = detail::costs_of(step);
    auto times = make_timeline<Transport>(programs, costs);
    expects(times.sound.ok, "a step that hangs cannot be rehearsed with losses");
    std::vector<std::size_t> limits;
    for (auto const& row : times.rows) {
        limits.push_back(row.instructions.size());
    }
    for (auto const& l : losses) {
        for (std::size_t r = 0; r < times.rows.size(); ++r) {
            if (detail::rank_of(step, times.rows[r]) == l.rank) {
                auto const& done = times.rows[r].instructions;
                limits[r] = static_cast<std::size_t>(std::count_if(done.begin(), done.end(), [&](auto const& t) { return step.begin + t.end <= l.at; }));
            }
        }
        times = make_timeline<Transport>(programs, costs, limits);
    }
    return times;
}

inline finished_work finished_on(timed_row const& row, stage_id stage, rank_id rank)
{
    finished_work result{rank, row.pipeline, stage, {}};
    for (auto const& t : row.instructions) {
        if (stage_of(t.instruction) == stage && (t.instruction.kind == instruction_kind::backward || t.instruction.kind == instruction_kind::weight_gradient)) {
            result.microbatches.insert(microbatch_of(t.instruction));
        }
    }
    return result;
}

/// The phases after the survivors have left, from `detect` of the loss at `lost` on; returns when the last one ends.
inline seconds add_recovery(std::vector<trace_event>& events, modelled_step const& step, array_view<rank_id const> survivors, array_view<seconds const> left,
                            recovery_times const& times, seconds lost, seconds cut)
{
    auto const add = [&](rank_id rank, activity kind, seconds start, seconds end) {
        if (start < cut) {
            events.push_back(detail::phase_event(step, rank, kind, start, std::min(end, cut)));
        }
    };
    seconds together = lost + times.detect + times.revoke;
    for (std::size_t k = 0; k < survivors.size(); ++k) {
        add(survivors[k], activity::detect, lost, lost + times.detect);
        add(survivors[k], activity::revoke, left[k], left[k] + times.revoke);
        together = std::max(together, left[k] + times.revoke);
    }
    struct phase {
        rheo::activity activity;
        seconds takes;
    };
    phase const phases[] = {{activity::decide, times.decide},     {activity::shrink, times.shrink}, {activity::link, times.link},
                            {activity::exchange, times.exchange}, {activity::plan, times.plan},     {activity::copy, times.copy},
                            {activity::merge, times.merge}};
    for (std::size_t k = 0; k < survivors.size(); ++k) {
        auto start = left[k] + times.revoke;
        auto end = together;
        for (auto const& p : phases) {
            end += p.takes;
            add(survivors[k], p.activity, start, end);
            start = end;
        }
    }
    for (auto const& p : phases) {
        together += p.takes;
    }
    return together;
}

}  // namespace on_timeline

/// Rehearses a step that loses ranks, up to the moment at which the survivors continue with what is missing.
/// Losses after that moment are not looked at: they belong to the second part.
/// @pre the step is sound; losses ascend in time, each rank once, the first within the step
template <class Transport = nonblocking>
interrupted_step rehearse_losses(modelled_step const& step, array_view<modelled_loss const> losses, recovery_times const& phases)
{
    expects(!losses.empty(), "a rehearsal of losses needs one");
    for (std::size_t k = 1; k < losses.size(); ++k) {
        expects(losses[k - 1].at <= losses[k].at, "losses are given in the order of their times");
    }
    auto const programs = detail::programs_of(step);
    auto const heard = losses.front().at + phases.detect;
    std::size_t early = 1;
    while (early < losses.size() && losses[early].at <= heard) {
        ++early;
    }
    auto const times = on_timeline::timeline_with_losses<Transport>(step, losses.first(early), programs);

    interrupted_step result{{}, {}, {}, step.generation, heard};
    std::vector<seconds> left;
    for (auto row : times.rows) {
        auto const rank = detail::rank_of(step, row);
        std::erase_if(row.instructions, [&](auto const& t) { return step.begin + t.start >= heard; });
        bool const lost = on_timeline::is_lost(losses.first(early), rank);
        // A wait that had not ended when the loss was heard of has not succeeded.
        while (!lost && !row.instructions.empty() && !is_work(row.instructions.back().instruction.kind) && step.begin + row.instructions.back().end > heard) {
            row.instructions.pop_back();
        }
        detail::add_events(result.events, step, row);
        if (lost) {
            continue;
        }
        left.push_back(std::max(heard, step.begin + detail::end_of(row)));
        result.survivors.push_back(rank);
        auto const& placement = programs[at(row.pipeline)].placement;
        for (std::size_t s = 0; s < placement.size(); ++s) {
            if (placement[s] == row.position) {
                result.finished.push_back(on_timeline::finished_on(row, stage_id{static_cast<int>(s)}, rank));
            }
        }
    }

    auto next = early;
    for (auto lost = losses.front().at;;) {
        auto cut = seconds{std::numeric_limits<double>::infinity()};
        std::vector<trace_event> events;
        auto end = on_timeline::add_recovery(events, step, result.survivors, left, phases, lost, cut);
        bool const again = next < losses.size() && losses[next].at < end;
        if (again) {
            events.clear();
            cut = losses[next].at;
            on_timeline::add_recovery(events, step, result.survivors, left, phases, lost, cut);
        }
        for (auto& e : events) {
            e.generation = result.generation;
        }
        result.events.insert(result.events.end(), events.begin(), events.end());
        ++result.generation;
        result.end = end;
        if (!again) {
            break;
        }
        lost = cut;
        for (std::size_t k = 0; k < result.survivors.size();) {
            if (result.survivors[k] == losses[next].rank) {
                result.survivors.erase(result.survivors.begin() + static_cast<std::ptrdiff_t>(k));
                left.erase(left.begin() + static_cast<std::ptrdiff_t>(k));
            } else {
                left[k] = std::max(left[k], lost + phases.detect);
                ++k;
            }
        }
        std::erase_if(result.finished, [&](auto const& f) { return f.rank == losses[next].rank; });
        ++next;
    }
    std::sort(result.survivors.begin(), result.survivors.end());
    return result;
}

/// Rehearses a step that loses ranks to its end: `replan` gets the interrupted step and answers with the
/// second part, whose beginning, generation and attempt are set here.
/// @pre as rehearse_losses; the second part is sound
template <class Transport = nonblocking, class Replan>
rehearsal rehearse(modelled_step const& step, array_view<modelled_loss const> losses, recovery_times const& phases, Replan&& replan)
{
    auto first = rehearse_losses<Transport>(step, losses, phases);
    modelled_step second = replan(std::as_const(first));
    second.begin = first.end;
    second.generation = first.generation;
    second.step = step.step;
    second.attempt = step.attempt;
    ++second.attempt;
    auto result = rehearse_step<Transport>(second);
    result.events.insert(result.events.begin(), first.events.begin(), first.events.end());
    return result;
}

}  // namespace test
