#pragma once
// SPDX-License-Identifier: Apache-2.0

// Real clocks as the published method takes them: each operation runs at the slowest of its buckets that is planned to
// fit. Times were floored, so what really happens ends a little later than planned; here it is as it really is.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/energy/clocks/clocked_plan.hpp"
#include "rheo/energy/frontier/frontier.hpp"
#include "rheo/energy/frontier/make_activity_network.hpp"
#include "rheo/energy/profile/exponential_fit.hpp"

namespace rheo::inline v0 {

/// The buckets of each curve of an activity network that was made with the exponential fit.
template <class OnlyWhenCalled = void>
std::vector<std::vector<bucketed_option>> buckets_of(made_network const& made, watts blocking)
{
    std::vector<std::vector<bucketed_option>> result;
    for (auto const& options : made.options) {
        result.push_back(bucketed(options, blocking, made.activities.unit));
    }
    return result;
}

/// The plan at the clocks of its buckets. @pre the plan was made from the activity network, the buckets as well
template <class OnlyWhenCalled = void>
clocked_plan at_bucket_clocks(made_network const& made, timed_plan const& plan, std::vector<std::vector<bucketed_option>> const& buckets, watts blocking)
{
    return plan_with(made.activities, blocking, [&](std::size_t k) {
        auto const& options = buckets[static_cast<std::size_t>(made.activities.curve_of[k])];
        std::size_t which = 0;
        while (which + 1 < options.size() && options[which + 1].time <= plan.durations[k]) {
            ++which;
        }
        return options[which].measured;
    });
}

/// What the published method runs at each tick of its frontier, fastest first. @pre the frontier is of the activity network and has its plans
template <class OnlyWhenCalled = void>
std::vector<clocked_plan> published_plans(made_network const& made, frontier const& f, watts blocking)
{
    auto const buckets = buckets_of(made, blocking);
    std::vector<clocked_plan> plans;
    for (auto time = f.vertices.back().time; time <= f.vertices.front().time; time += ticks{1}) {
        plans.push_back(at_bucket_clocks(made, plan_at(f, time), buckets, blocking));
    }
    std::stable_sort(plans.begin(), plans.end(), [](clocked_plan const& a, clocked_plan const& b) { return a.time < b.time; });
    return plans;
}

}  // namespace rheo::inline v0
