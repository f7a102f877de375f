#pragma once
// SPDX-License-Identifier: Apache-2.0

// Ranks for which the others wait at blocking collectives: how often, how long, and what takes them longer than the others since the collective
// before. A message is not judged: it blocks two ranks only, and one without payload ends before those with one do.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "rheo/analyze/device/device_account.hpp"
#include "rheo/analyze/device/meetings.hpp"
#include "rheo/analyze/device/step_times.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What a rank's lateness at collectives amounts to.
struct straggler {
    std::uint32_t trace = 0;
    std::int64_t times = 0;  ///< how many collectives had to wait for it
    std::int64_t steps = 0;  ///< in how many of its marked steps
    whole_nanoseconds late{};
    whole_nanoseconds worst{};           ///< of one collective
    std::uint32_t series = 0;            ///< of the worst
    std::uint32_t meeting = 0;           ///< of the worst, in its series
    std::optional<grown_class> because;  ///< before the worst, against the other members; nothing where no class explains half of it

    friend constexpr bool operator==(straggler const&, straggler const&) = default;
};

struct straggler_report {
    std::vector<straggler> stragglers;      ///< who costs most comes first
    std::vector<whole_nanoseconds> waited;  ///< trace -> how long it waited in collectives for the last one to begin
    std::int64_t meetings = 0;              ///< collectives that were judged
    std::int64_t apart = 0;                 ///< that did not end at once, and were not

    friend bool operator==(straggler_report const&, straggler_report const&) = default;
};

namespace detail {

/// What made a member late: where its time went since the collective before, against the other members.
template <class OnlyWhenCalled = void>
std::optional<grown_class> cause_of_lateness(meeting_series const& series, array_view<rank_trace const> traces, std::size_t member, std::size_t meeting,
                                             whole_nanoseconds late)
{
    std::vector<device_account> accounts;
    for (std::size_t m = 0; m < series.traces.size(); ++m) {
        auto const& trace = traces[series.traces[m]];
        auto const& events = series.events[m];
        auto const from = meeting == 0 ? trace.events.front().begin : trace.events[events[meeting - 1]].end;
        std::array const bounds{from, std::max(from, trace.events[events[meeting]].begin)};
        accounts.push_back(accounts_between(trace, bounds).front());
    }
    auto const grown = most_grown(accounts, member);
    return grown && grown->by >= late / 2 ? grown : std::nullopt;
}

/// Notes that a collective waited for a rank. @returns whether it was its worst lateness so far
template <class OnlyWhenCalled = void>
bool note_lateness(straggler& of, whole_nanoseconds late)
{
    ++of.times;
    of.late += late;
    if (late <= of.worst) {
        return false;
    }
    of.worst = late;
    return true;
}

/// The marked step in which an event was launched, or ran where its launch is not known; npos where there is none.
template <class OnlyWhenCalled = void>
std::size_t step_at(rank_trace const& trace, device_event const& event)
{
    auto const at = event.launch == no_launch ? event.begin : trace.launches[event.launch].begin;
    auto const after =
        std::upper_bound(trace.steps.begin(), trace.steps.end(), at, [](whole_nanoseconds time, marked_step const& step) { return time < step.begin; });
    return after == trace.steps.begin() || std::prev(after)->end <= at ? static_cast<std::size_t>(-1)
                                                                       : static_cast<std::size_t>(after - trace.steps.begin() - 1);
}

}  // namespace detail

/// Judges all collectives. @pre the series are those of the traces, which are in order. Cost: linear, and a pass over its members' traces for each
/// straggler.
template <class OnlyWhenCalled = void>
straggler_report find_stragglers(array_view<rank_trace const> traces, array_view<meeting_series const> all)
{
    straggler_report report;
    report.waited.resize(traces.size());
    std::vector<straggler> by_trace(traces.size());
    std::vector<std::vector<bool>> steps(traces.size());
    for (std::uint32_t s = 0; s < all.size(); ++s) {
        auto const& series = all[s];
        for (std::uint32_t k = 0; k < series.meetings(); ++k) {
            auto const arrivals = arrivals_at(series, traces, k);
            ++(arrivals.together ? report.meetings : report.apart);
            for (std::size_t m = 0; m < series.traces.size() && arrivals.together; ++m) {
                auto const t = series.traces[m];
                report.waited[t] += arrivals.waited[m];
                if (arrivals.late[m] <= arrivals.limit) {
                    continue;
                }
                if (detail::note_lateness(by_trace[t], arrivals.late[m])) {
                    by_trace[t].series = s;
                    by_trace[t].meeting = k;
                }
                steps[t].resize(traces[t].steps.size());
                if (auto const step = detail::step_at(traces[t], traces[t].events[series.events[m][k]]); step < steps[t].size()) {
                    steps[t][step] = true;
                }
            }
        }
    }
    for (std::uint32_t t = 0; t < traces.size(); ++t) {
        if (by_trace[t].times > 0) {
            auto found = by_trace[t];
            auto const& series = all[found.series];
            auto const member = std::lower_bound(series.traces.begin(), series.traces.end(), t) - series.traces.begin();
            found.trace = t;
            found.steps = std::count(steps[t].begin(), steps[t].end(), true);
            found.because = detail::cause_of_lateness(series, traces, static_cast<std::size_t>(member), found.meeting, found.worst);
            report.stragglers.push_back(found);
        }
    }
    std::stable_sort(report.stragglers.begin(), report.stragglers.end(), [](straggler const& a, straggler const& b) { return a.late > b.late; });
    return report;
}

}  // namespace rheo::inline v0
