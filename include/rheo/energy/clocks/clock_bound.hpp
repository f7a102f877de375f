#pragma once
// SPDX-License-Identifier: Apache-2.0

// What no choice of clocks can do better. A frontier's plans are optimal for its curves, and those are in whole ticks,
// or fitted, so their cost bounds nothing that a device does. Its flow does, whatever it was found for: for any flow f of
// value F from the first event to the last, the times t of operations that end by T satisfy sum of f t <= F T, so their costs
// add up to at least the sum over operations of the least c + f t among their options, less F T. Here with the
// options as they were measured, in nanoseconds.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/energy/clocks/whole_options.hpp"
#include "rheo/energy/frontier/activity_network.hpp"

namespace rheo::inline v0 {

namespace detail {

/// What a time is worth at a flow, rounded down. @pre flow, nanoseconds >= 0
constexpr std::int64_t worth_of_time(std::int64_t flow, std::int64_t nanoseconds, std::int64_t unit)
{
    return flow * (nanoseconds / unit) + flow * (nanoseconds % unit) / unit;
}

constexpr std::int64_t priced(whole_option const& option, std::int64_t flow, std::int64_t unit)
{
    return option.cost + worth_of_time(flow, option.nanoseconds, unit);
}

/// A bound that falls as the end gets later: cost >= sum - value x end.
struct falling_bound {
    std::int64_t sum;
    std::int64_t value;  ///< of the flow, nanojoules per tick

    constexpr std::int64_t at(std::int64_t end, std::int64_t unit) const { return sum - worth_of_time(value, end, unit) - 1; }
};

/// The bound by a flow. @pre tables of all curves
template <class OnlyWhenCalled = void>
constexpr falling_bound bound_by(activity_network const& p, std::vector<std::vector<whole_option>> const& tables, std::vector<std::int64_t> const& flows)
{
    auto const unit = whole_unit(p.unit);
    falling_bound result{0, 0};
    for (std::size_t a = 0; a < p.network.arcs.size(); ++a) {
        auto const& arc = p.network.arcs[a];
        result.value += arc.from == 0 ? flows[a] : 0;
        if (arc.operation < 0) {
            result.sum += worth_of_time(flows[a], arc.nanoseconds, unit);
            continue;
        }
        auto const& options = tables[static_cast<std::size_t>(p.curve_of[static_cast<std::size_t>(arc.operation)])];
        auto least = priced(options.front(), flows[a], unit);
        for (auto const& option : options) {
            least = std::min(least, priced(option, flows[a], unit));
        }
        result.sum += least;
    }
    return result;
}

}  // namespace detail

/// The cost below which no choice of one option per operation is that ends by `end`, nor one of several options in turn.
/// @param flows on each arc, nanojoules per tick, as a certificate has them @pre they balance, as verify checks
template <class OnlyWhenCalled = void>
constexpr nanojoules least_cost_by(activity_network const& p, std::vector<std::vector<clock_option>> const& options, watts blocking,
                                   std::vector<std::int64_t> const& flows, seconds end)
{
    auto const bound = detail::bound_by(p, detail::worth_choosing(options, blocking), flows);
    return {bound.at(in_whole_nanoseconds(end), detail::whole_unit(p.unit))};
}

/// The same of an iteration of all devices that draw `waiting` together until it ends, no earlier than `from` and by `to`.
template <class OnlyWhenCalled = void>
constexpr joules least_energy_by(activity_network const& p, std::vector<std::vector<clock_option>> const& options, watts blocking,
                                 std::vector<std::int64_t> const& flows, watts waiting, seconds from, seconds to)
{
    auto const bound = detail::bound_by(p, detail::worth_choosing(options, blocking), flows);
    auto const at = [&](seconds end) { return in_joules({bound.at(in_whole_nanoseconds(end), detail::whole_unit(p.unit))}) + waiting * end; };
    return std::min(at(from), at(to));  // linear in the end, but for whole nanojoules
}

}  // namespace rheo::inline v0
