#pragma once
// SPDX-License-Identifier: Apache-2.0

// The frontier: for every iteration time from the least-energy one, T*, down to the fastest one, the plan of least
// energy. It is kept as its vertices; what lies between two of them follows, because along a piece each event comes
// earlier by the same ticks as the end until it has reached its time at the next vertex. So a look-up is a binary
// search and a pass over the events: the answer to a straggler (Chung et al., Perseus, SOSP 2024, section 3.3) is
// the plan at min(T*, T'), ready at once.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rheo/energy/frontier/parametric_flow.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// A corner of the curve: the least cost at a time, and what each tick less costs from here on.
struct frontier_vertex {
    ticks time;
    nanojoules cost;   ///< sum of e - P_b t
    nanojoules slope;  ///< per tick; at the fastest vertex that of the piece before

    friend constexpr bool operator==(frontier_vertex, frontier_vertex) = default;
};

struct frontier {
    activity_network activities;
    watts waiting;                          ///< what all devices draw while they wait: P_b N
    std::vector<frontier_vertex> vertices;  ///< from T* (or the slowest plan) to the fastest
    std::vector<std::int32_t> events;       ///< vertex by vertex, when each event happens, in ticks; none where only the curve is known

    friend constexpr bool operator==(frontier const&, frontier const&) = default;
};

/// Where a frontier begins.
enum class frontier_begin {
    least_energy,  ///< at T*: slower plans take more energy as well, unless there is a straggler
    slowest,       ///< where every operation is at its cheapest clock: for time that is lost anyway, waiting for others
};

namespace detail {

constexpr nanojoules waiting_per_tick(activity_network const& p, watts waiting) { return in_whole_nanojoules(waiting * p.unit); }

}  // namespace detail

/// Hears of no progress.
struct no_progress {
    constexpr void operator()(ticks) const {}
};

/// The frontier of an activity network whose devices draw `waiting` together while they wait. `progress` hears of the time of
/// each vertex, those before T* too. Cost: a step of the parametric flow per vertex; memory vertices x events.
template <class Progress = no_progress>
constexpr frontier make_frontier(activity_network p, watts waiting, frontier_begin begin = frontier_begin::least_energy, Progress progress = {})
{
    frontier result{std::move(p), waiting, {}, {}};
    parametric_flow flow{result.activities};
    auto const per_tick = detail::waiting_per_tick(result.activities, waiting);
    for (bool more = true; more;) {
        progress(flow.time());
        more = flow.saturate();
        if (!more || begin == frontier_begin::slowest || flow.slope() > per_tick || !result.vertices.empty()) {
            auto const slope = more || result.vertices.empty() ? flow.slope() : result.vertices.back().slope;
            result.vertices.push_back({flow.time(), flow.cost(), slope});
            result.events.insert(result.events.end(), flow.events().begin(), flow.events().end());
        }
        if (more) {
            flow.advance();
        }
    }
    return result;
}

/// The time of a number of ticks.
constexpr seconds time_of(frontier const& f, ticks time) { return static_cast<double>(time.count) * f.activities.unit; }
constexpr seconds fastest_time(frontier const& f) { return time_of(f, f.vertices.back().time); }
/// T*, where the frontier was made to begin there.
constexpr seconds slowest_time(frontier const& f) { return time_of(f, f.vertices.front().time); }

/// The energy of an iteration of all devices, waiting included.
constexpr joules total_energy(frontier const& f, nanojoules cost, seconds time) { return in_joules(cost) + f.waiting * time; }

/// A point of the frontier: the times of all events and operations, and the cost in the relaxation.
struct timed_plan {
    ticks time;
    nanojoules cost;
    nanojoules slope;                  ///< what one tick less costs here, when the plan is not at the fastest time
    std::vector<std::int32_t> events;  ///< in ticks
    std::vector<ticks> durations;      ///< of each operation

    friend constexpr bool operator==(timed_plan const&, timed_plan const&) = default;
};

namespace detail {

/// The vertex at or before a time, seen from the slow end. @pre the frontier reaches the time
constexpr std::size_t vertex_before(frontier const& f, ticks time)
{
    std::size_t low = 0;
    for (std::size_t high = f.vertices.size(); high - low > 1;) {
        auto const middle = (low + high) / 2;
        (f.vertices[middle].time >= time ? low : high) = middle;
    }
    return low;
}

/// The whole ticks of a deadline, at most those of the slowest vertex.
constexpr ticks ticks_within(frontier const& f, seconds deadline)
{
    auto const scaled = deadline / f.activities.unit * (1.0 + 1e-12);  // a deadline that is a whole number of ticks stays one
    auto const most = static_cast<double>(f.vertices.front().time.count);
    return {static_cast<std::int32_t>(scaled < most ? scaled : most)};
}

}  // namespace detail

/// The least cost within a time, from the vertices alone. @pre time >= that of the fastest vertex. Cost: a binary search.
template <class OnlyWhenCalled = void>
constexpr nanojoules cost_at(frontier const& f, ticks time)
{
    expects(!f.vertices.empty() && time >= f.vertices.back().time, "no plan is faster than the fastest one");
    auto const wanted = std::min(time, f.vertices.front().time);
    auto const& before = f.vertices[detail::vertex_before(f, wanted)];
    return before.cost + before.slope * static_cast<std::int64_t>((before.time - wanted).count);
}

/// The same within a deadline. @pre deadline >= the fastest time
template <class OnlyWhenCalled = void>
constexpr nanojoules cost_within(frontier const& f, seconds deadline)
{
    return cost_at(f, detail::ticks_within(f, deadline));
}

/// The plan of least energy that takes at most `time`. @pre time >= that of the fastest vertex. Cost: linear in events and arcs.
template <class OnlyWhenCalled = void>
constexpr timed_plan plan_at(frontier const& f, ticks time)
{
    auto const cost = cost_at(f, time);
    auto const wanted = std::min(time, f.vertices.front().time);
    auto const k = detail::vertex_before(f, wanted);
    auto const step = (f.vertices[k].time - wanted).count;
    timed_plan plan{wanted, cost, f.vertices[k].slope, {}, {}};
    auto const events = static_cast<std::size_t>(f.activities.network.events);
    expects(f.events.size() == f.vertices.size() * events, "a frontier without events is a curve: it has no plans");
    auto const next = std::min(k + 1, f.vertices.size() - 1);
    for (std::size_t v = 0; v < events; ++v) {
        plan.events.push_back(std::max(f.events[k * events + v] - step, f.events[next * events + v]));
    }
    for (auto const& o : f.activities.network.operations) {
        auto const& arc = f.activities.network.arcs[static_cast<std::size_t>(o.arc)];
        ticks const there{plan.events[static_cast<std::size_t>(arc.to)] - plan.events[static_cast<std::size_t>(arc.from)]};
        plan.durations.push_back(std::min(there, curve_of(f.activities, arc)->times.back()));
    }
    return plan;
}

/// The plan for a deadline: the one at min(T*, deadline), or a sentence when no plan is that fast.
template <class OnlyWhenCalled = void>
constexpr result<timed_plan> at(frontier const& f, seconds deadline)
{
    if (!(deadline >= seconds{0.0}) || detail::ticks_within(f, deadline) < f.vertices.back().time) {
        return failure{"no plan meets this deadline: the fastest one takes longer"};
    }
    return plan_at(f, detail::ticks_within(f, deadline));
}

/// The time that pipelines which work together take at least: that of the slowest of their fastest plans.
/// Each then runs its own plan for it. @pre at least one frontier
template <class OnlyWhenCalled = void>
constexpr seconds common_deadline(array_view<frontier const> frontiers)
{
    expects(!frontiers.empty(), "pipelines that work together are at least one");
    seconds longest{0.0};
    for (auto const& f : frontiers) {
        longest = std::max(longest, fastest_time(f));
    }
    return longest;
}

}  // namespace rheo::inline v0
