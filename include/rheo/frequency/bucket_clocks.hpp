#pragma once
// SPDX-License-Identifier: Apache-2.0

// Real clocks as the published method takes them: each operation runs at the slowest of its buckets that is planned to
// fit. Times were floored, so what really happens ends a little later than planned; here it is as it really is.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/frequency/exponential_fit.hpp"
#include "rheo/frequency/frontier.hpp"
#include "rheo/frequency/make_project.hpp"
#include "rheo/frequency/realise.hpp"

namespace rheo::inline v0 {

/// The buckets of each curve of a project that was made with the exponential fit.
template <class = void>
std::vector<std::vector<bucketed_option>> buckets_of(made_project const& made, watts blocking)
{
    std::vector<std::vector<bucketed_option>> result;
    for (auto const& options : made.options) {
        result.push_back(bucketed(options, blocking, made.what.unit));
    }
    return result;
}

/// The plan at the clocks of its buckets. @pre the plan was made from the project, the buckets as well
template <class = void>
clocked_plan at_bucket_clocks(
    made_project const& made, timed_plan const& plan, std::vector<std::vector<bucketed_option>> const& buckets, watts blocking)
{
    auto const& network = made.what.network;
    clocked_plan result{{0.0}, {0.0}, {0}, {}};
    for (std::size_t k = 0; k < network.operations.size(); ++k) {
        auto const& options = buckets[static_cast<std::size_t>(made.what.curve_of[k])];
        std::size_t which = 0;
        while (which + 1 < options.size() && options[which + 1].time <= plan.durations[k]) {
            ++which;
        }
        auto const& option = options[which].what;
        result.options.push_back(option);
        result.computing += option.energy;
        result.cost += in_whole_nanojoules(option.energy - blocking * option.time);
    }
    std::vector<std::int64_t> times(static_cast<std::size_t>(network.events), 0);
    for (auto const& arc : network.arcs) {
        auto const length = arc.operation < 0 ? arc.nanoseconds : detail::nanoseconds_above(result.options[static_cast<std::size_t>(arc.operation)].time);
        auto& end = times[static_cast<std::size_t>(arc.to)];
        end = std::max(end, times[static_cast<std::size_t>(arc.from)] + length);
    }
    result.time = nanoseconds(static_cast<double>(times.back()));
    return result;
}

}  // namespace rheo::inline v0
