#pragma once
// SPDX-License-Identifier: Apache-2.0

// What one rank's device did, as profilers record it: kernels and copies on streams, the calls of the host that launched them, and the steps
// that the program marked. It says nothing of files, so traces of any origin are analyzed alike; times are whole nanoseconds of the rank's own
// clock, which need not be that of other ranks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What a device is busy with.
enum class device_work : std::uint8_t { compute, communication, memory };

inline constexpr std::int64_t no_correlation = -1;
inline constexpr std::uint32_t no_launch = UINT32_MAX;
inline constexpr std::uint32_t no_collective = UINT32_MAX;

/// A kernel, a copy or a filling of memory.
struct device_event {
    whole_nanoseconds begin;
    whole_nanoseconds end;
    std::int64_t correlation = no_correlation;  ///< the number that it shares with its launch
    std::uint32_t launch = no_launch;           ///< index into the trace's launches
    std::uint32_t name = 0;                     ///< index into the trace's names
    std::uint32_t collective = no_collective;   ///< index into the trace's collectives, if it is a blocking one
    std::uint16_t stream = 0;                   ///< index into the trace's streams
    device_work work = device_work::compute;

    friend constexpr bool operator==(device_event const&, device_event const&) = default;
};

/// The call of the host that put work on a stream.
struct launch_event {
    whole_nanoseconds begin;
    whole_nanoseconds end;
    std::int64_t correlation = no_correlation;

    friend constexpr bool operator==(launch_event const&, launch_event const&) = default;
};

struct traced_stream {
    std::int64_t device = 0;
    std::int64_t number = 0;

    friend constexpr auto operator<=>(traced_stream const&, traced_stream const&) = default;
};

/// A step as the program marked it on the host.
struct marked_step {
    std::int64_t number = 0;
    whole_nanoseconds begin;
    whole_nanoseconds end;

    friend constexpr bool operator==(marked_step const&, marked_step const&) = default;
};

struct rank_trace {
    rank_id rank;
    std::vector<device_event> events;
    std::vector<launch_event> launches;
    std::vector<marked_step> steps;
    std::vector<traced_stream> streams;
    std::vector<std::string> names;        ///< of kernels and copies, each once
    std::vector<std::string> collectives;  ///< operation and group: what has the same text on several ranks is one series of collectives

    friend bool operator==(rank_trace const&, rank_trace const&) = default;
};

namespace detail {

constexpr bool begins_before(device_event const& a, device_event const& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; }

/// The launch of an event: of its correlation the last one that began before it, else the first. Correlations of programs that run long come
/// again. Work mostly runs in the order of its launches, so the one after that of the event before is tried first.
template <class OnlyWhenCalled = void>
std::uint32_t launch_of(device_event const& event, std::vector<launch_event> const& sorted, std::size_t& next)
{
    auto const fits = [&](std::size_t k) { return k < sorted.size() && sorted[k].correlation == event.correlation; };
    if (event.correlation == no_correlation) {
        return no_launch;
    }
    if (fits(next) && !fits(next + 1) && (next == 0 || !fits(next - 1))) {
        return static_cast<std::uint32_t>(next++);
    }
    auto const after = std::upper_bound(sorted.begin(), sorted.end(), event, [](device_event const& e, launch_event const& launch) {
        return e.correlation != launch.correlation ? e.correlation < launch.correlation : e.begin < launch.begin;
    });
    auto const place = static_cast<std::size_t>(after - sorted.begin());
    auto const found = place > 0 && fits(place - 1) ? place - 1 : place;
    next = found + 1;
    return fits(found) ? static_cast<std::uint32_t>(found) : no_launch;
}

}  // namespace detail

/// Brings a trace into the form that the functions of this folder expect: events and steps by their begins, each event with its launch, no
/// launch without an event. Cost: n log n where events are out of order, else linear.
template <class OnlyWhenCalled = void>
void put_in_order(rank_trace& trace)
{
    auto& events = trace.events;
    if (!std::is_sorted(events.begin(), events.end(), detail::begins_before)) {
        std::stable_sort(events.begin(), events.end(), detail::begins_before);
    }
    std::stable_sort(trace.steps.begin(), trace.steps.end(), [](marked_step const& a, marked_step const& b) { return a.begin < b.begin; });
    auto& launches = trace.launches;
    auto const by_correlation = [](launch_event const& a, launch_event const& b) {
        return a.correlation != b.correlation ? a.correlation < b.correlation : a.begin < b.begin;
    };
    if (!std::is_sorted(launches.begin(), launches.end(), by_correlation)) {
        std::sort(launches.begin(), launches.end(), by_correlation);
    }
    std::vector<std::uint32_t> places(launches.size(), no_launch);  // of the launches that stay
    std::size_t next = 0;
    for (auto& event : events) {
        event.launch = detail::launch_of(event, launches, next);
        if (event.launch != no_launch) {
            places[event.launch] = 0;
        }
    }
    std::uint32_t kept = 0;
    for (std::size_t k = 0; k < launches.size(); ++k) {
        if (places[k] != no_launch) {
            places[k] = kept;
            launches[kept++] = launches[k];
        }
    }
    launches.resize(kept);
    for (auto& event : events) {
        event.launch = event.launch == no_launch ? no_launch : places[event.launch];
    }
}

}  // namespace rheo::inline v0
