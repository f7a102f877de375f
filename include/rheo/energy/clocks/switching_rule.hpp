#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a change of a clock costs, and how often a plan changes clocks.

#include <cstddef>

#include "rheo/energy/clocks/clocked_plan.hpp"
#include "rheo/energy/frontier/event_network.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct switching_rule {
    seconds latency{0.0};  ///< between two operations at different clocks
    seconds dwell{0.0};    ///< least time of computing at one clock between two changes

    friend constexpr bool operator==(switching_rule, switching_rule) = default;
};

/// How often the clock of some rank changes in an iteration that follows one like it.
template <class OnlyWhenCalled = void>
constexpr int switches(event_network const& network, clocked_plan const& plan)
{
    int count = 0;
    auto const& all = network.operations;
    for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
        while (end < all.size() && all[end].row == all[begin].row) {
            ++end;
        }
        megahertz last{0.0};
        for (std::size_t k = begin; k < 2 * end - begin; ++k) {  // twice round: the second time counts
            auto const clock = plan.options[k < end ? k : k - (end - begin)].clock;
            if (clock.count > 0.0) {
                count += k >= end && clock != last ? 1 : 0;
                last = clock;
            }
        }
    }
    return count;
}

}  // namespace rheo::inline v0
