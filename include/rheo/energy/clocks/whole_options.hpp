#pragma once
// SPDX-License-Identifier: Apache-2.0

// The options of an operation in whole nanoseconds and nanojoules, as searches over real clocks compare them. Those that
// another one beats in both are left out; those above the convex hull stay, as a device with one clock per operation may need them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/energy/profile/cost_curve.hpp"
#include "rheo/energy/profile/profile.hpp"

namespace rheo::inline v0::detail {

/// An option in whole numbers.
struct whole_option {
    std::int64_t nanoseconds;
    std::int64_t cost;
    std::size_t place;  ///< among the options of the curve
};

/// Options of which each is slower and cheaper than the one before.
template <class OnlyWhenCalled = void>
constexpr std::vector<whole_option> worth_choosing(std::vector<clock_option> const& options, watts blocking)
{
    std::vector<whole_option> kept;
    for (std::size_t k = 0; k < options.size(); ++k) {
        whole_option const next{nanoseconds_above(options[k].time), in_whole_nanojoules(options[k].energy - blocking * options[k].time).count, k};
        if (kept.empty() || next.cost < kept.back().cost) {
            if (!kept.empty() && kept.back().nanoseconds == next.nanoseconds) {
                kept.pop_back();
            }
            kept.push_back(next);
        }
    }
    return kept;
}

/// The tables of all curves.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<whole_option>> worth_choosing(std::vector<std::vector<clock_option>> const& options, watts blocking)
{
    std::vector<std::vector<whole_option>> tables;
    for (auto const& each : options) {
        tables.push_back(worth_choosing(each, blocking));
    }
    return tables;
}

/// The slowest option that takes at most this long; the fastest when none does.
template <class OnlyWhenCalled = void>
constexpr int slowest_within(std::vector<whole_option> const& options, std::int64_t nanoseconds)
{
    std::size_t option = 0;
    while (option + 1 < options.size() && options[option + 1].nanoseconds <= nanoseconds) {
        ++option;
    }
    return static_cast<int>(option);
}

}  // namespace rheo::inline v0::detail
