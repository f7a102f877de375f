#pragma once
// SPDX-License-Identifier: Apache-2.0

// The events of some steps of a simulated job, for a trace: what an executor would record, at the times of the job, and checkpoints.

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

#include "rheo/topology/tagged_index.hpp"
#include "rheo/trace/chrome.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// From the first to the last of them, from 0 on.
struct shown_steps {
    std::int64_t first = 0;
    std::int64_t last = 1;

    friend constexpr bool operator==(shown_steps, shown_steps) = default;
};

/// More would be some hundred megabytes as text.
inline constexpr std::size_t most_traced_events = 1'000'000;

/// Gathers the events of a job (simulate_job.hpp).
template <class OnlyWhenCalled = void>
class job_trace {
public:
    /// Ranks write their parts of a checkpoint, beside steps or while they wait for it.
    struct checkpoint {
        rank_id rank;
        seconds start;
        seconds end;

        friend constexpr bool operator==(checkpoint, checkpoint) = default;
    };

    /// @param most the simulation ends with an error when there are more events
    explicit job_trace(shown_steps shown, std::size_t most = most_traced_events) : shown_{shown}, most_{most} {}

    bool shows(std::int64_t step) const { return shown_.first <= step && step <= shown_.last; }
    void add(trace_event const& event) { events_.push_back(event); }
    void add_checkpoint(checkpoint const& written) { checkpoints_.push_back(written); }

    std::size_t size() const { return events_.size() + checkpoints_.size(); }
    bool is_too_large() const { return size() > most_; }
    std::size_t most() const { return most_; }

    std::vector<trace_event> const& events() const { return events_; }
    std::vector<checkpoint> const& checkpoints() const { return checkpoints_; }

private:
    shown_steps shown_;
    std::size_t most_;
    std::vector<trace_event> events_;
    std::vector<checkpoint> checkpoints_;
};

template <class OnlyWhenCalled = void>
void write_chrome_trace(std::ostream& out, job_trace<> const& trace)
{
    chrome_trace_writer<> writer{out};
    for (auto const& e : trace.events()) {
        writer.add(e);
    }
    for (auto const& c : trace.checkpoints()) {
        writer.add_span(c.rank, trace_stream::checkpoint, "checkpoint", c.start, c.end);
    }
    writer.finish();
}

}  // namespace rheo::inline v0
