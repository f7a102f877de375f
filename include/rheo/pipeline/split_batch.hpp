#pragma once
// SPDX-License-Identifier: Apache-2.0

// The microbatches of a step over unequal pipelines: find the earliest deadline by which together they
// can do the batch, give everyone what it can do by then, and take back the excess where it helps the
// next slowest most. Everyone's time grows with its share, so that is optimal: at the deadline each
// pipeline has at most one microbatch that ends exactly then, and all others are needed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/pipeline/cost.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

struct batch_split {
    std::vector<int> shares;  ///< microbatches per pipeline, in the pipelines' order
    int without_work = 0;     ///< pipelines whose share is 0; only when there are fewer microbatches than pipelines
    seconds time;             ///< of the slowest pipeline
    int unplaced = 0;         ///< microbatches that no pipeline has memory for: then there are no shares

    friend constexpr bool operator==(batch_split const&, batch_split const&) = default;
};

namespace detail {

constexpr std::int64_t share_by(cost_in_nanoseconds cost, std::int64_t deadline, std::int64_t least)
{
    auto const share = done_by(cost, deadline);
    return share < least ? least : share;
}

/// Pipelines that are alike.
struct equal_costs {
    cost_in_nanoseconds cost;
    std::int64_t pipelines;
};

template <class OnlyWhenCalled = void>
constexpr std::vector<equal_costs> by_cost(array_view<cost_in_nanoseconds const> costs)
{
    std::vector<equal_costs> kinds;
    for (auto const cost : costs) {
        auto const known = std::find_if(kinds.begin(), kinds.end(), [&](equal_costs const& kind) { return kind.cost == cost; });
        if (known != kinds.end()) {
            ++known->pipelines;
        } else {
            kinds.push_back({cost, 1});
        }
    }
    return kinds;
}

/// The earliest time by which the pipelines, each with at least `least` microbatches, can do them all. The
/// bound is on what is above the least: it may be before some pipeline has done its least.
template <class OnlyWhenCalled = void>
constexpr std::int64_t earliest_deadline(array_view<cost_in_nanoseconds const> costs, std::int64_t microbatches, std::int64_t least)
{
    auto const kinds = by_cost<OnlyWhenCalled>(costs);
    std::int64_t early = -1;
    std::int64_t late = 0;
    for (auto const& [cost, pipelines] : kinds) {
        late = std::max(late, time_of(cost, std::min(cost.most, microbatches)));
    }
    while (late - early > 1) {
        auto const middle = early + (late - early) / 2;
        std::int64_t done = 0;
        for (auto const& [cost, pipelines] : kinds) {
            done += pipelines * std::min(microbatches, share_by(cost, middle, least));
        }
        (done >= microbatches ? late : early) = middle;
    }
    return late;
}

}  // namespace detail

/// The shares that minimise the slowest pipeline, then the next slowest and so on; among equals the
/// lower pipeline takes more. Every pipeline gets at least one microbatch when there are enough, and none more than its
/// memory has room for; no shares when all together have not enough.
/// @pre there is a pipeline, each has room for a microbatch, no cost is negative, microbatches >= 0
/// Cost: O(pipelines x (kinds + pipelines) + kinds x log of the time in nanoseconds).
template <class OnlyWhenCalled = void>
constexpr batch_split split_batch(array_view<pipeline_cost const> pipelines, int microbatches)
{
    expects(!pipelines.empty(), "a batch cannot be split over no pipelines");
    expects(microbatches >= 0, "a batch cannot have a negative number of microbatches");
    std::vector<detail::cost_in_nanoseconds> costs;
    std::int64_t room = 0;
    for (auto const& pipeline : pipelines) {
        expects(pipeline.fixed.count >= 0 && pipeline.per_microbatch.count >= 0, "a pipeline cannot have a negative cost");
        expects(pipeline.most_microbatches >= 1, "a pipeline must have room for a microbatch");
        costs.push_back(detail::in_nanoseconds(pipeline));
        room += costs.back().most;
    }
    if (room < microbatches) {
        return {{}, 0, {}, static_cast<int>(microbatches - room)};
    }
    std::int64_t const least = static_cast<std::size_t>(microbatches) >= pipelines.size() ? 1 : 0;
    auto const deadline = detail::earliest_deadline<OnlyWhenCalled>(costs, microbatches, least);
    batch_split split;
    std::int64_t excess = -microbatches;
    for (auto const cost : costs) {
        split.shares.push_back(static_cast<int>(detail::share_by(cost, deadline, least)));
        excess += split.shares.back();
    }
    for (; excess > 0; --excess) {
        auto chosen = costs.size();
        std::int64_t time_left = 0;
        for (std::size_t p = 0; p < costs.size(); ++p) {
            if (split.shares[p] > least && detail::time_of(costs[p], split.shares[p]) == deadline) {
                auto const without_one = detail::time_of(costs[p], split.shares[p] - 1);
                if (chosen == costs.size() || without_one <= time_left) {
                    chosen = p;
                    time_left = without_one;
                }
            }
        }
        --split.shares[chosen];
    }
    for (std::size_t p = 0; p < costs.size(); ++p) {
        auto const time = time_of(pipelines[p], split.shares[p]);
        split.time = split.time < time ? time : split.time;
        split.without_work += split.shares[p] == 0 ? 1 : 0;
    }
    return split;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template batch_split split_batch<>(array_view<pipeline_cost const>, int);
#endif

}  // namespace rheo::inline v0
