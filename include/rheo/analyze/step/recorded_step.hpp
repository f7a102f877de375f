#pragma once
// SPDX-License-Identifier: Apache-2.0

// The events of a run divided into steps: of each rank what it did from its last update to its next one. What is neither a step nor part of one is
// added up beside: recoveries with the work that they cut off, evaluations, and what lies between.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "rheo/topology/tagged_index.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// One rank in one attempt of a step.
struct recorded_row {
    rank_id rank;
    seconds begin;                         ///< from when on it could do this step: the end of what it did before
    array_view<trace_event const> events;  ///< by start, from its first instruction to its update
};

/// One attempt of a step that ended with a vote.
struct recorded_step {
    generation_id generation;
    step_id step;
    attempt_id attempt;
    bool whole = true;  ///< no recovery has cut off a part of it, and no rank's record is missing
    std::vector<recorded_row> rows;
};

/// Where a rank's time went outside of the steps.
struct rank_record {
    rank_id rank;
    seconds begin;       ///< of its first event
    seconds end;         ///< of its last one
    seconds recovering;  ///< start, changes of the members, and the work of steps that losses cut off
    seconds evaluating;
};

struct recorded_run {
    std::vector<recorded_step> steps;  ///< by generation, step and attempt; rows by rank
    std::vector<rank_record> ranks;    ///< by rank
};

namespace detail {

using step_key = std::tuple<generation_id, step_id, attempt_id>;

/// Divides the events of one rank, which it looks at in order.
template <class OnlyWhenCalled = void>
class step_divider {
public:
    step_divider(std::map<step_key, recorded_step>& steps, array_view<trace_event const> events)
        : steps_{&steps}, events_{events}, ready_{events.front().start}, record_{events.front().rank, events.front().start, events.front().end, {}, {}}
    {
    }

    rank_record divide()
    {
        for (next_ = 0; next_ < events_.size(); ++next_) {
            auto const& e = events_[next_];
            record_.end = std::max(record_.end, e.end);
            if (e.start >= evaluated_) {
                take(e);
            }
        }
        return record_;
    }

private:
    static constexpr auto none = std::numeric_limits<std::size_t>::max();

    void take(trace_event const& e)
    {
        if (e.activity == activity::evaluate) {  // its instructions lie within it, and are not those of a step
            record_.evaluating += e.end - e.start;
            evaluated_ = ready_ = e.end;
            first_ = none;
        } else if (is_recovery(e.activity)) {
            if (e.activity <= activity::link || first_ == none) {  // a change that is planned at the end of a step does not cut it off
                whole_ = whole_ && first_ == none;
                first_ = none;
                recovers_ = true;
                pass(e.activity == activity::first_instruction ? e.start : e.end);  // which ends beside the instructions
            }
        } else if (is_instruction(e.activity)) {
            first_ = std::min(first_, next_);
        } else if (first_ == none) {
            pass(e.end);  // a vote or an update without work: that of a recovery, at the end, or of a rank without a place
        } else if (e.activity == activity::update) {
            end_step(e);
        }
    }

    /// What is no step lasts until then.
    void pass(seconds end)
    {
        record_.recovering += recovers_ ? std::max(end - ready_, seconds{}) : seconds{};
        ready_ = std::max(ready_, end);
    }

    void end_step(trace_event const& update)
    {
        auto& step = (*steps_)[{update.generation, update.step, update.attempt}];
        step.generation = update.generation;
        step.step = update.step;
        step.attempt = update.attempt;
        step.whole = step.whole && whole_;
        step.rows.push_back({update.rank, ready_, {events_.data() + first_, next_ - first_ + 1}});
        ready_ = update.end;
        first_ = none;
        whole_ = true;
        recovers_ = false;
    }

    std::map<step_key, recorded_step>* steps_;
    array_view<trace_event const> events_;
    std::size_t next_ = 0;
    std::size_t first_ = none;  ///< instruction of the step that is open
    seconds ready_;             ///< the end of what came before the step that is open
    seconds evaluated_{-std::numeric_limits<double>::infinity()};
    bool whole_ = true;      ///< nothing of the step that is open was cut off
    bool recovers_ = false;  ///< since the last step
    rank_record record_;
};

}  // namespace detail

/// Puts events in the order that recorded_steps expects. Cost: linear where they are in order already, else n log n.
template <class OnlyWhenCalled = void>
void put_in_order(std::vector<trace_event>& events)
{
    auto const before = [](trace_event const& a, trace_event const& b) { return a.rank != b.rank ? a.rank < b.rank : a.start < b.start; };
    if (!std::is_sorted(events.begin(), events.end(), before)) {
        std::stable_sort(events.begin(), events.end(), before);
    }
}

/// Divides the events of a run, which live as long as the result is used. What a rank began and did not end with an update is in no step.
/// @pre the events are in order, their times within 10^9 s of the launch. Cost: linear in the events, log of the steps for each rank's step.
template <class OnlyWhenCalled = void>
recorded_run recorded_steps(array_view<trace_event const> events)
{
    std::map<detail::step_key, recorded_step> steps;
    recorded_run run;
    for (std::size_t begin = 0; begin < events.size();) {
        auto end = begin;
        while (end < events.size() && events[end].rank == events[begin].rank) {
            ++end;
        }
        run.ranks.push_back(detail::step_divider<>{steps, {events.data() + begin, end - begin}}.divide());
        begin = end;
    }
    std::map<generation_id, std::size_t> most;  // rows of a step
    for (auto const& [key, step] : steps) {
        most[step.generation] = std::max(most[step.generation], step.rows.size());
    }
    run.steps.reserve(steps.size());
    for (auto& [key, step] : steps) {
        step.whole = step.whole && step.rows.size() == most[step.generation];
        run.steps.push_back(std::move(step));
    }
    return run;
}

}  // namespace rheo::inline v0
