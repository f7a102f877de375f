#pragma once
// SPDX-License-Identifier: Apache-2.0

// What an iteration of one pipeline costs in time, as planning sees it: a part that is always paid
// (filling and draining the pipeline) and a part per microbatch (its slowest stage). Seconds are for
// people; decisions compare whole nanoseconds, so that no order of additions can change a plan.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct pipeline_cost {
    seconds fixed;  ///< paid once when there is any microbatch
    seconds per_microbatch;
    int most_microbatches = std::numeric_limits<int>::max();  ///< that its memory has room for

    friend constexpr bool operator==(pipeline_cost, pipeline_cost) = default;
};

/// The estimate of a pipeline from what its stages take per microbatch, forward and backward together:
/// the time of m microbatches is the sum of all stages + (m - 1) x the slowest.
constexpr pipeline_cost cost_of_stages(array_view<seconds const> stage_times)
{
    seconds sum;
    seconds slowest;
    for (auto const time : stage_times) {
        sum += time;
        slowest = slowest < time ? time : slowest;
    }
    return {sum - slowest, slowest};
}

namespace detail {

/// A pipeline_cost as decisions see it. A microbatch always costs something, or shares had no bound.
struct cost_in_nanoseconds {
    std::int64_t fixed = 0;
    std::int64_t per_microbatch = 1;
    std::int64_t most = std::numeric_limits<int>::max();  ///< microbatches

    friend constexpr bool operator==(cost_in_nanoseconds, cost_in_nanoseconds) = default;
};

constexpr cost_in_nanoseconds in_nanoseconds(pipeline_cost cost)
{
    return {in_whole_nanoseconds(cost.fixed), std::max<std::int64_t>(1, in_whole_nanoseconds(cost.per_microbatch)), cost.most_microbatches};
}

constexpr std::int64_t time_of(cost_in_nanoseconds cost, std::int64_t microbatches)
{
    return microbatches == 0 ? 0 : cost.fixed + microbatches * cost.per_microbatch;
}

/// How many microbatches the pipeline finishes by `deadline`, as far as it has room for them.
constexpr std::int64_t done_by(cost_in_nanoseconds cost, std::int64_t deadline)
{
    return deadline < cost.fixed ? 0 : std::min(cost.most, (deadline - cost.fixed) / cost.per_microbatch);
}

}  // namespace detail

/// The time of an iteration with so many microbatches; zero without any.
constexpr seconds time_of(pipeline_cost cost, int microbatches)
{
    return nanoseconds(static_cast<double>(detail::time_of(detail::in_nanoseconds(cost), microbatches)));
}

}  // namespace rheo::inline v0
