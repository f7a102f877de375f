#pragma once
// SPDX-License-Identifier: Apache-2.0

// Writes what a job does in its shown steps into a trace. Counts attempts and generations as a run does.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/job/detail/plan_steps.hpp"
#include "rheo/job/job_trace.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/simulate/cluster/recovery_times.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

inline seconds trace_time(whole_nanoseconds time) { return {static_cast<double>(time.count) * 1e-9}; }

/// Leaves nothing behind that time.
template <class OnlyWhenCalled = void>
void cut_at(std::vector<trace_event>& events, seconds time)
{
    std::erase_if(events, [&](auto const& e) { return e.start > time; });
    for (auto& e : events) {
        e.end = std::min(e.end, time);
    }
}

template <class OnlyWhenCalled = void>
class job_tracer {
public:
    /// @param trace null: nothing is shown
    job_tracer(job_description const& job, job_trace<>* trace) : until_{job.until}, trace_{trace} {}

    bool shows(std::int64_t step) const { return trace_ != nullptr && trace_->shows(step); }
    bool is_too_large() const { return trace_ != nullptr && trace_->is_too_large(); }
    std::size_t most() const { return trace_->most(); }

    /// The members change: a new generation.
    void change() { ++generation_; }

    /// A part of a step. @param events from its begin on, of the first rank of each group
    void part(step_part const& part, std::vector<trace_event> const& events, std::int64_t step, whole_nanoseconds begin)
    {
        attempt_ = step == step_ ? attempt_ + 1 : 0;
        step_ = step;
        add_all(part.of, events, begin);
    }

    /// An evaluation before the step.
    void evaluation(step_part const& part, std::vector<trace_event> const& events, std::int64_t step, whole_nanoseconds begin, whole_nanoseconds end)
    {
        step_ = std::exchange(step, step_);
        for (auto const rank : ranks_of(part.of)) {
            add(rank, activity::evaluate, trace_time(begin), trace_time(end));
        }
        add_all(part.of, events, begin);
        step_ = step;
    }

    /// Survivors of a loss hear of it.
    void detection(std::vector<rank_id> const& ranks, std::int64_t step, whole_nanoseconds begin, whole_nanoseconds end)
    {
        recovery_times alone{};
        alone.detect = trace_time(end - begin);
        phases(alone, ranks, step, begin, end);
    }

    /// Phases of all ranks, one after the other. @param end when they end or are cut
    void phases(recovery_times const& times, std::vector<rank_id> const& ranks, std::int64_t step, whole_nanoseconds begin, whole_nanoseconds end)
    {
        if (!shows(step)) {
            return;
        }
        step_ = std::exchange(step, step_);
        auto const cut = trace_time(std::min(end, until_));
        for (auto const rank : ranks) {
            auto from = trace_time(begin);
            for (auto const& [name, time] : recovery_phase_list) {
                auto const to = from + times.*time;
                if (times.*time > seconds{} && from < cut) {
                    add(rank, *activity_named(name), from, std::min(to, cut));
                }
                from = to;
            }
        }
        step_ = step;
    }

    void checkpoint(std::vector<rank_id> const& ranks, std::int64_t step, whole_nanoseconds begin, whole_nanoseconds end)
    {
        for (std::size_t k = 0; shows(step) && begin < end && k < ranks.size(); ++k) {
            trace_->add_checkpoint({ranks[k], trace_time(begin), trace_time(std::min(end, until_))});
        }
    }

private:
    void add(rank_id rank, activity what, seconds start, seconds end)
    {
        trace_->add(
            {.rank = rank, .activity = what, .generation = generation_, .step = step_id{step_}, .attempt = attempt_id{attempt_}, .start = start, .end = end});
    }

    /// All ranks of a group do what its first one does; which of them sends to which is not told then.
    void add_all(plan const& p, std::vector<trace_event> const& events, whole_nanoseconds begin)
    {
        std::vector<std::vector<rank_id>> group_of;  // by its first rank
        bool is_shared = false;
        for (auto const& pipeline : p.pipelines) {
            for (auto& group : groups_of(pipeline)) {
                group_of.resize(std::max(group_of.size(), at(group.front()) + 1));
                is_shared = is_shared || group.size() > 1;
                group_of[at(group.front())] = std::move(group);
            }
        }
        for (auto event : events) {
            event.generation = generation_;
            event.step = step_id{step_};
            event.attempt = attempt_id{attempt_};
            event.start += trace_time(begin);
            event.end += trace_time(begin);
            event.peer = is_shared ? no_rank : event.peer;
            for (auto const rank : group_of[at(event.rank)]) {
                event.rank = rank;
                trace_->add(event);
            }
        }
    }

    whole_nanoseconds until_;
    job_trace<>* trace_;
    generation_id generation_{};
    std::int64_t step_ = -1;  ///< of the last part
    std::int32_t attempt_ = 0;
};

}  // namespace detail
}  // namespace rheo::inline v0
