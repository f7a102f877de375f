#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a frontier is computed of: a network of operations with what each costs at each time, in ticks of one length.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/energy/frontier/event_network.hpp"
#include "rheo/energy/profile/cost_curve.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// A network, the curve of each of its operations, and the length of a tick.
struct activity_network {
    event_network network;
    std::vector<cost_curve> curves;  ///< a curve per kind of operation
    std::vector<int> curve_of;       ///< operation -> its curve
    seconds unit;

    friend constexpr bool operator==(activity_network const&, activity_network const&) = default;
};

/// The curve of an arc; constant arcs have none.
constexpr cost_curve const* curve_of(activity_network const& p, event_arc const& arc)
{
    return arc.operation < 0 ? nullptr : &p.curves[static_cast<std::size_t>(p.curve_of[static_cast<std::size_t>(arc.operation)])];
}

/// The least time of an arc.
template <class OnlyWhenCalled = void>
constexpr ticks least_time(activity_network const& p, event_arc const& arc)
{
    auto const* curve = curve_of(p, arc);
    return curve == nullptr ? detail::ticks_above(arc.nanoseconds, detail::whole_unit(p.unit)) : curve->times.front();
}

/// Which end of its curve every operation is at.
enum class curve_end { fastest, cheapest };

/// How many ticks the network takes then. Cost: a pass over the arcs.
template <class OnlyWhenCalled = void>
constexpr std::int64_t length_at(activity_network const& p, curve_end where)
{
    std::vector<std::int64_t> when(static_cast<std::size_t>(p.network.events), 0);
    for (auto const& arc : p.network.arcs) {
        auto const* curve = curve_of(p, arc);
        auto const length = curve != nullptr && where == curve_end::cheapest ? curve->times.back() : least_time(p, arc);
        auto& end = when[static_cast<std::size_t>(arc.to)];
        end = std::max(end, when[static_cast<std::size_t>(arc.from)] + length.count);
    }
    return when.back();
}

}  // namespace rheo::inline v0
