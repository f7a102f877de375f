#pragma once
// SPDX-License-Identifier: Apache-2.0

// A plan at clocks that exist, and the two that others are compared with: every computation at its highest clock, and
// every computation at the option that is fastest for it. They differ where a device that throttles is faster below
// its highest clock.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rheo/energy/frontier/activity_network.hpp"
#include "rheo/energy/frontier/event_network.hpp"
#include "rheo/energy/profile/cost_curve.hpp"
#include "rheo/energy/profile/profile.hpp"

namespace rheo::inline v0 {

/// A plan at real clocks.
struct clocked_plan {
    seconds time;                       ///< how long the iteration takes
    joules computing;                   ///< sum of the energies of the computations
    nanojoules cost;                    ///< sum of e - P_b t: what is compared with the frontier's
    std::vector<clock_option> options;  ///< operation -> what it runs at

    friend constexpr bool operator==(clocked_plan const&, clocked_plan const&) = default;
};

/// The plan in which operation k runs at `option_of(k)`, an option of its own. Cost: a pass over the network.
template <class OptionOf>
constexpr clocked_plan plan_with(activity_network const& p, watts blocking, OptionOf option_of)
{
    clocked_plan plan{{0.0}, {0.0}, {0}, {}};
    for (std::size_t k = 0; k < p.curve_of.size(); ++k) {
        clock_option const option = option_of(k);
        plan.computing += option.energy;
        plan.cost += in_whole_nanojoules(option.energy - blocking * option.time);
        plan.options.push_back(option);
    }
    std::vector<std::int64_t> when(static_cast<std::size_t>(p.network.events), 0);
    for (auto const& arc : p.network.arcs) {
        auto const length = arc.operation < 0 ? arc.nanoseconds : detail::nanoseconds_above(plan.options[static_cast<std::size_t>(arc.operation)].time);
        auto& end = when[static_cast<std::size_t>(arc.to)];
        end = std::max(end, when[static_cast<std::size_t>(arc.from)] + length);
    }
    plan.time = nanoseconds(static_cast<double>(when.back()));
    return plan;
}

/// Every operation at the option that takes least time: no plan is faster. @pre a list of options, fastest first, per curve
template <class OnlyWhenCalled = void>
constexpr clocked_plan at_fastest_clocks(activity_network const& p, std::vector<std::vector<clock_option>> const& options, watts blocking)
{
    return plan_with(p, blocking, [&](std::size_t k) { return options[static_cast<std::size_t>(p.curve_of[k])].front(); });
}

/// Every operation at the highest clock it was measured at, as devices run whose clocks are not set. @pre as there
template <class OnlyWhenCalled = void>
constexpr clocked_plan at_highest_clocks(activity_network const& p, std::vector<std::vector<clock_option>> const& options, watts blocking)
{
    return plan_with(p, blocking, [&](std::size_t k) {
        auto const& all = options[static_cast<std::size_t>(p.curve_of[k])];
        return *std::max_element(all.begin(), all.end(), [](clock_option const& a, clock_option const& b) { return a.clock < b.clock; });
    });
}

}  // namespace rheo::inline v0
