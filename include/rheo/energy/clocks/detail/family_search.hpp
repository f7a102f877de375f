#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where and how hard the family of energy/clocks/real_frontier.hpp is searched: its effort, its deadlines, and its restarts from the relaxed plan.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "rheo/energy/clocks/clock_search.hpp"
#include "rheo/energy/frontier/frontier.hpp"

namespace rheo::inline v0::detail {

/// How much work the search does, in events that it looks at: some 20 ns each. Less in the compiler, which counts its steps.
struct search_effort {
    std::int64_t at_the_fastest;
    std::int64_t at_each_step;
    std::int64_t steps;  ///< to the energy of the fastest plan
    std::size_t again;   ///< so many steps from one beginning with the relaxed plan to the next
};

template <class OnlyWhenCalled = void>
constexpr search_effort effort_for(std::size_t operations)
{
    auto const steps = std::clamp<std::int64_t>((std::int64_t{1} << 22U) / static_cast<std::int64_t>(operations + 1), 256, 4096);
    auto const again = std::clamp<std::size_t>(operations / 512, 4, 32);
    return std::is_constant_evaluated() ? search_effort{1'000, 100, 64, 4} : search_effort{1'000'000, 8'000, steps, again};
}

/// Times at which the relaxed cost has fallen by equal steps, from the fastest time on; and the end of the curve.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::int64_t> steps_of(frontier const& f, std::int64_t fastest, std::int64_t end, std::int64_t steps)
{
    auto const unit = whole_unit(f.activities.unit);
    auto const& last = f.vertices.back();
    auto const step = std::max<std::int64_t>(in_whole_nanojoules(total_energy(f, last.cost, time_of(f, last.time))).count / steps, 1);
    std::vector<std::int64_t> result{fastest};
    auto next = last.cost.count - step;
    for (auto k = f.vertices.size() - 1; k-- > 0;) {
        auto const& slower = f.vertices[k];
        if (slower.slope.count <= 0) {
            continue;
        }
        for (; next >= slower.cost.count; next -= step) {
            auto const when = (slower.time.count - (next - slower.cost.count) / slower.slope.count) * unit;
            if (when > result.back() && when < end) {
                result.push_back(when);
            }
        }
    }
    if (end > result.back()) {
        result.push_back(end);
    }
    return result;
}

/// When the events of the relaxed plan for a deadline happen, in nanoseconds. Cost: that of plan_at.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::int64_t> events_within(frontier const& f, std::int64_t deadline)
{
    auto const unit = whole_unit(f.activities.unit);
    auto const time = std::clamp<std::int64_t>(deadline / unit, f.vertices.back().time.count, f.vertices.front().time.count);
    std::vector<std::int64_t> result;
    for (auto const event : plan_at(f, ticks{static_cast<std::int32_t>(time)}).events) {
        result.push_back(event * unit);
    }
    return result;
}

/// Continues from the cheaper of the plan that the search has and the relaxed plan rounded down. @pre the search meets the deadline
template <class OnlyWhenCalled = void>
constexpr void restart_search(clock_search<>& search, frontier const& f, std::int64_t deadline)
{
    auto const events = events_within(f, deadline);
    auto best = search.choices();
    auto least = search.cost();
    for (auto const how : {rounding::windows, rounding::forward, rounding::backward}) {
        search.round_down(events, how);
        if (!search.meet(deadline)) {
            continue;
        }
        search.fill(deadline, [](auto const&) {});
        if (search.cost() < least) {
            least = search.cost();
            best = search.choices();
        }
    }
    search.restart(best);
}

}  // namespace rheo::inline v0::detail
