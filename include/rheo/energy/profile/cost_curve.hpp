#pragma once
// SPDX-License-Identifier: Apache-2.0

// What an operation costs as a function of its time: convex, piecewise linear and in whole numbers, so that sums are
// the same in any order and on any machine. Costs are e - P_b t, because a device that waits draws P_b: over an
// iteration of time T the devices draw sum(e_i - P_b t_i) + P_b N T, and only the first part depends on the
// choice (Chung et al., Perseus, SOSP 2024, section 4). Beyond its last time a curve is flat: an operation that may
// take longer runs at its cheapest clock and waits.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/energy/profile/profile.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct tick_unit;
using ticks = quantity<tick_unit, std::int32_t>;  ///< times in the frontier's own unit

struct cost_curve {
    std::vector<ticks> times;        ///< ascending; times[0] is the fastest
    std::vector<nanojoules> slopes;  ///< saved per tick from times[k] to times[k + 1]; positive, strictly falling
    nanojoules dearest;              ///< the cost at times[0]

    friend constexpr bool operator==(cost_curve const&, cost_curve const&) = default;
};

/// The cost at a time. @pre time >= the fastest
template <class OnlyWhenCalled = void>
constexpr nanojoules cost_at(cost_curve const& curve, ticks time)
{
    auto cost = curve.dearest;
    for (std::size_t k = 0; k < curve.slopes.size() && curve.times[k] < time; ++k) {
        auto const end = time < curve.times[k + 1] ? time : curve.times[k + 1];
        cost -= curve.slopes[k] * static_cast<std::int64_t>((end - curve.times[k]).count);
    }
    return cost;
}

namespace detail {

/// Whole nanoseconds that are certainly enough.
constexpr std::int64_t nanoseconds_above(seconds time)
{
    auto const whole = static_cast<std::int64_t>(time.count * 1e9);
    return static_cast<double>(whole) < time.count * 1e9 ? whole + 1 : whole;
}

constexpr ticks ticks_above(std::int64_t nanoseconds, std::int64_t unit) { return {static_cast<std::int32_t>((nanoseconds + unit - 1) / unit)}; }

constexpr std::int64_t whole_unit(seconds unit)
{
    auto const count = in_whole_nanoseconds(unit);
    expects(count >= 1, "the unit of a frontier is at least a nanosecond");
    return count;
}

/// The curve through points of ascending times and falling costs whose slopes fall. Slopes are rounded to whole
/// nanojoules per tick; equal ones become one piece.
template <class OnlyWhenCalled = void>
constexpr cost_curve curve_through(std::vector<ticks> const& times, std::vector<nanojoules> const& costs)
{
    cost_curve curve{{times[0]}, {}, costs[0]};
    for (std::size_t k = 0; k + 1 < times.size(); ++k) {
        std::int64_t const width = times[k + 1].count - times[k].count;
        nanojoules const slope{((costs[k] - costs[k + 1]).count + width / 2) / width};
        if (slope.count <= 0) {
            break;
        }
        if (!curve.slopes.empty() && curve.slopes.back() <= slope) {
            curve.times.back() = times[k + 1];
        } else {
            curve.slopes.push_back(slope);
            curve.times.push_back(times[k + 1]);
        }
    }
    return curve;
}

}  // namespace detail

/// The lower convex hull of the options: what a device can reach on average with two clocks inside one operation, and
/// a lower bound for what it can reach with one. Times are rounded up, so that what is planned can be kept.
/// @pre options not empty, fastest first. Cost: linear (monotone chain; Andrew 1979).
template <class OnlyWhenCalled = void>
constexpr cost_curve hull_curve(std::vector<clock_option> const& options, watts blocking, seconds unit)
{
    expects(!options.empty(), "an operation without options has no cost");
    auto const tick = detail::whole_unit(unit);
    std::vector<ticks> times;
    std::vector<nanojoules> costs;
    for (auto const& option : options) {
        auto const time = detail::ticks_above(detail::nanoseconds_above(option.time), tick);
        auto const cost = in_whole_nanojoules(option.energy - blocking * option.time);
        if (!times.empty() && cost >= costs.back()) {
            continue;  // slower and not cheaper: flat from here on
        }
        if (!times.empty() && times.back() == time) {
            times.pop_back();
            costs.pop_back();
        }
        while (times.size() >= 2) {
            auto const n = times.size();
            auto const above =
                (costs[n - 2] - costs[n - 1]).count * (time - times[n - 1]).count <= (costs[n - 1] - cost).count * (times[n - 1] - times[n - 2]).count;
            if (!above) {
                break;
            }
            times.pop_back();
            costs.pop_back();
        }
        times.push_back(time);
        costs.push_back(cost);
    }
    return detail::curve_through(times, costs);
}

}  // namespace rheo::inline v0
