#pragma once
// SPDX-License-Identifier: Apache-2.0

// Blocking collectives in the traces of several ranks: which events are one collective, how far apart the ranks' clocks are, and who came how
// late. A blocking collective ends everywhere at once, so its ends align the clocks, and the others wait for the rank that begins last.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rheo/analyze/device/rank_trace.hpp"
#include "rheo/analyze/distribution.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The collectives of one operation and group, in order: meeting k of all members is one collective.
struct meeting_series {
    std::string name;
    std::vector<std::uint32_t> traces;               ///< of the members, ascending
    std::vector<std::vector<std::uint32_t>> events;  ///< member -> meeting -> index of the event in its trace
    std::vector<whole_nanoseconds> clocks;           ///< member -> how much later its clock is than the median of theirs, its trace begun at 0

    std::size_t meetings() const { return events.empty() ? 0 : events.front().size(); }
    friend bool operator==(meeting_series const&, meeting_series const&) = default;
};

/// How a collective met.
struct arrivals_of_meeting {
    std::vector<whole_nanoseconds> late;    ///< member -> its begin after the median of the begins; below zero: before it
    std::vector<whole_nanoseconds> waited;  ///< member -> from its begin to the last one
    whole_nanoseconds limit{};              ///< who is later than this is a straggler
    bool together = false;                  ///< all end at once, within the limit: it was blocking, and the members are those of one collective

    friend bool operator==(arrivals_of_meeting const&, arrivals_of_meeting const&) = default;
};

/// Nobody is late by less.
inline constexpr whole_nanoseconds least_lateness{50'000};

namespace detail {

/// Begin and end of a member's event since its trace began: clocks of other epochs must not make numbers that do not fit.
struct member_event {
    whole_nanoseconds begin;
    whole_nanoseconds end;
};

template <class OnlyWhenCalled = void>
member_event event_of(meeting_series const& series, array_view<rank_trace const> traces, std::size_t member, std::size_t meeting)
{
    auto const& events = traces[series.traces[member]].events;
    auto const& event = events[series.events[member][meeting]];
    return {event.begin - events.front().begin, event.end - events.front().begin};
}

template <class OnlyWhenCalled = void>
std::vector<whole_nanoseconds> clocks_of(meeting_series const& series, array_view<rank_trace const> traces)
{
    std::vector<std::vector<whole_nanoseconds>> apart(series.traces.size());
    std::vector<whole_nanoseconds> ends(series.traces.size());
    for (std::size_t k = 0; k < series.meetings(); ++k) {
        for (std::size_t m = 0; m < ends.size(); ++m) {
            ends[m] = event_of(series, traces, m, k).end;
        }
        auto const middle = median_of(ends);
        for (std::size_t m = 0; m < ends.size(); ++m) {
            apart[m].push_back(ends[m] - middle);
        }
    }
    std::vector<whole_nanoseconds> clocks;
    for (auto& of_member : apart) {
        clocks.push_back(median_of(std::move(of_member)));
    }
    return clocks;
}

}  // namespace detail

/// All series of at least two members. Where ranks have different numbers of collectives, their last ones are taken to be the same.
/// @pre the traces are in order. Cost: linear, log of the series.
template <class OnlyWhenCalled = void>
std::vector<meeting_series> find_meetings(array_view<rank_trace const> traces)
{
    std::map<std::string, meeting_series> found;
    for (std::uint32_t t = 0; t < traces.size(); ++t) {
        std::vector<std::vector<std::uint32_t>> events(traces[t].collectives.size());
        for (std::uint32_t e = 0; e < traces[t].events.size(); ++e) {
            if (auto const c = traces[t].events[e].collective; c != no_collective) {
                events[c].push_back(e);
            }
        }
        for (std::size_t c = 0; c < events.size(); ++c) {
            if (!events[c].empty()) {
                auto& series = found[traces[t].collectives[c]];
                series.traces.push_back(t);
                series.events.push_back(std::move(events[c]));
            }
        }
    }
    std::vector<meeting_series> all;
    for (auto& [name, series] : found) {
        if (series.traces.size() < 2) {
            continue;
        }
        series.name = name;
        auto fewest = series.events.front().size();
        for (auto const& events : series.events) {
            fewest = std::min(fewest, events.size());
        }
        for (auto& events : series.events) {
            events.erase(events.begin(), events.end() - static_cast<std::ptrdiff_t>(fewest));
        }
        series.clocks = detail::clocks_of(series, traces);
        all.push_back(std::move(series));
    }
    return all;
}

/// @pre meeting < series.meetings(), and the series is one of these traces. Cost: linear in the members.
template <class OnlyWhenCalled = void>
arrivals_of_meeting arrivals_at(meeting_series const& series, array_view<rank_trace const> traces, std::size_t meeting)
{
    arrivals_of_meeting arrivals;
    std::vector<whole_nanoseconds> begins;
    whole_nanoseconds longest{};
    whole_nanoseconds first_end{INT64_MAX};
    whole_nanoseconds last_end{INT64_MIN};
    for (std::size_t m = 0; m < series.traces.size(); ++m) {
        auto const event = detail::event_of(series, traces, m, meeting);
        begins.push_back(event.begin - series.clocks[m]);
        longest = std::max(longest, event.end - event.begin);
        first_end = std::min(first_end, event.end - series.clocks[m]);
        last_end = std::max(last_end, event.end - series.clocks[m]);
    }
    auto const middle = median_of(begins);
    auto const last = *std::max_element(begins.begin(), begins.end());
    for (auto const begin : begins) {
        arrivals.late.push_back(begin - middle);
        arrivals.waited.push_back(last - begin);
    }
    arrivals.limit = std::max(least_lateness, longest / 10);
    arrivals.together = last_end - first_end <= arrivals.limit && last < first_end;
    return arrivals;
}

}  // namespace rheo::inline v0
