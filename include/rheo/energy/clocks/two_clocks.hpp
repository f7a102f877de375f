#pragma once
// SPDX-License-Identifier: Apache-2.0

// For devices that can change the clock inside an operation: each operation does a share of its work at one corner of
// its hull and the rest at the next one, so that it takes exactly the time that the frontier gives it. Time and energy
// are linear in the share, so the relaxation's cost is reached and rounding loses nothing.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/energy/clocks/round_to_clocks.hpp"
#include "rheo/energy/frontier/frontier.hpp"
#include "rheo/energy/profile/cost_curve.hpp"

namespace rheo::inline v0 {

/// An operation at two clocks: the share of its work that is done at the first, faster one.
struct two_clock_option {
    clock_option faster;
    clock_option slower;
    double share;

    friend constexpr bool operator==(two_clock_option, two_clock_option) = default;
};

constexpr seconds time_of(two_clock_option const& o) { return o.share * o.faster.time + (1.0 - o.share) * o.slower.time; }
constexpr joules energy_of(two_clock_option const& o) { return o.share * o.faster.energy + (1.0 - o.share) * o.slower.energy; }

namespace detail {

/// The options at the corners of the hull of e - P_b t, fastest first, up to the cheapest.
template <class OnlyWhenCalled = void>
constexpr std::vector<clock_option> hull_options(std::vector<clock_option> const& options, watts blocking)
{
    auto const cost = [&](clock_option const& o) { return (o.energy - blocking * o.time).count; };
    std::vector<clock_option> corners;
    for (auto const& option : options) {
        if (!corners.empty() && cost(option) >= cost(corners.back())) {
            continue;
        }
        while (corners.size() >= 2) {
            auto const& a = corners[corners.size() - 2];
            auto const& b = corners.back();
            if ((cost(a) - cost(b)) * (option.time - b.time).count > (cost(b) - cost(option)) * (b.time - a.time).count) {
                break;
            }
            corners.pop_back();
        }
        if (!corners.empty() && corners.back().time == option.time) {
            corners.pop_back();
        }
        corners.push_back(option);
    }
    return corners;
}

}  // namespace detail

/// The two clocks of each operation at a point of a frontier that was made from hulls. @pre `options` are those of its activity network
template <class OnlyWhenCalled = void>
constexpr std::vector<two_clock_option> two_clocks(frontier const& f, timed_plan const& plan, std::vector<std::vector<clock_option>> const& options,
                                                   watts blocking)
{
    std::vector<std::vector<clock_option>> corners;
    for (auto const& o : options) {
        corners.push_back(detail::hull_options(o, blocking));
    }
    std::vector<two_clock_option> result;
    for (std::size_t k = 0; k < plan.durations.size(); ++k) {
        auto const& table = corners[static_cast<std::size_t>(f.activities.curve_of[k])];
        auto const time = time_of(f, plan.durations[k]);
        std::size_t slower = 0;
        while (slower + 1 < table.size() && table[slower].time < time) {
            ++slower;
        }
        if (slower == 0 || table[slower].time <= time) {
            result.push_back({table[slower], table[slower], 1.0});
        } else {
            auto const& fast = table[slower - 1];
            auto const& slow = table[slower];
            result.push_back({fast, slow, (slow.time - time) / (slow.time - fast.time)});
        }
    }
    return result;
}

}  // namespace rheo::inline v0
