#pragma once
// SPDX-License-Identifier: Apache-2.0

// From a point of the frontier to clocks that exist: the least of the plans at real clocks that keep a deadline. A
// longer deadline never takes more energy, and the frontier of no other fit leads to less. The relaxation's flow bounds what
// rounding has lost. Devices that can change the clock inside an operation lose nothing: two clocks that are
// neighbours on the hull, in turn, reach every point of it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/energy/clocks/clocked_plan.hpp"
#include "rheo/energy/clocks/real_frontier.hpp"
#include "rheo/energy/frontier/make_activity_network.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// The plan for a deadline (or for the end of the frontier, if that is earlier); or why there is none. @pre deadline <= what the frontier was made for
/// Cost: a pass over the family; where it is exact, a search.
template <class OnlyWhenCalled = void>
constexpr result<clocked_plan> round_to_clocks(real_frontier const& r, seconds deadline, waiting_until waits = waiting_until::deadline)
{
    auto const& activities = r.relaxed.activities;
    auto const end = deadline.count * 1e9 < static_cast<double>(r.until) ? in_whole_nanoseconds(deadline) : r.until;
    if (!(end >= r.fastest)) {
        return failure{"no plan meets this deadline: with each computation at its fastest clock the iteration takes longer"};
    }
    auto const tables = detail::worth_choosing(r.options, r.blocking);
    auto const waiting = waits == waiting_until::own_end ? r.relaxed.waiting : watts{0.0};
    std::vector<int> choices;
    if (r.exact) {
        choices = detail::exact_choices(r, tables, end, waiting);
    } else {
        std::int64_t least = 0;
        real_point const* best = nullptr;
        for (auto const& point : r.points) {
            if (point.deadline > end) {
                break;
            }
            auto const total = point.cost + in_whole_nanojoules(waiting * nanoseconds(static_cast<double>(point.time))).count;
            if (point.time <= end && (best == nullptr || total < least)) {
                best = &point;
                least = total;
            }
        }
        choices = detail::choices_after(r, best->changes);
    }
    return plan_with(activities, r.blocking, [&](std::size_t k) {
        auto const curve = static_cast<std::size_t>(activities.curve_of[k]);
        return r.options[curve][tables[curve][static_cast<std::size_t>(choices[k])].place];
    });
}

/// The same for one deadline. @pre `options` are those the frontier's activity network was made with
template <class OnlyWhenCalled = void>
constexpr result<clocked_plan> round_to_clocks(frontier const& f, std::vector<std::vector<clock_option>> const& options, watts blocking, seconds deadline,
                                               waiting_until waits = waiting_until::deadline)
{
    return round_to_clocks(make_real_frontier(f, options, blocking, deadline), deadline, waits);
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template result<clocked_plan> round_to_clocks<>(real_frontier const&, seconds, waiting_until);
#endif

}  // namespace rheo::inline v0
