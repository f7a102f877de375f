#pragma once
// SPDX-License-Identifier: Apache-2.0

// What pipelines do when ranks are lost or leave: the local rules first, so that pipelines which were not hit go on as
// they are and copy nothing; but whenever that would leave fewer than f + 1 pipelines although f + 1 fit (the rules do
// so in 785 of the 10,963 small cases), all pipelines are made anew with the fewest bytes moved. A rank that waits takes
// the place of one that is gone before anybody is asked to give a rank away.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "rheo/pipeline/local_rules.hpp"
#include "rheo/pipeline/recompose.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The survivors of each pipeline, with ranks that waited in the places of those that are gone.
template <class = void>
constexpr rank_groups refilled(array_view<pipeline_instance const> before, array_view<rank_holdings const* const> survivors)
{
    std::vector<char> waits(survivors.size(), 1);
    rank_groups groups;
    std::vector<std::size_t> wanted;
    for (auto const& pipeline : before) {
        groups.emplace_back();
        wanted.push_back(0);
        for (auto const rank : ranks_of(pipeline)) {
            ++wanted.back();
            for (std::size_t i = 0; i < survivors.size(); ++i) {
                if (survivors[i]->rank == rank) {
                    groups.back().push_back(rank);
                    waits[i] = 0;
                }
            }
        }
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
        for (std::size_t i = 0; i < survivors.size() && groups[g].size() < wanted[g]; ++i) {
            if (waits[i] != 0) {
                groups[g].push_back(survivors[i]->rank);
                waits[i] = 0;
            }
        }
    }
    return groups;
}

/// True when the group is this pipeline, all of it.
template <class = void>
constexpr bool is_whole(std::vector<rank_id> const& group, pipeline_instance const& pipeline)
{
    return ranks_of(pipeline) == group;
}

/// What the ranks of a pipeline miss where they are.
template <class = void>
constexpr bytes missing_in(pipeline_instance const& pipeline, array_view<rank_holdings const* const> by_rank, place_costs const& costs)
{
    bytes sum;
    for (std::size_t i = 0; i < by_rank.size(); ++i) {
        sum += bytes{costs.of(i, layers_of(pipeline, by_rank[i]->rank))};
    }
    return sum;
}

/// A pipeline of the group's ranks, each where the group misses the fewest bytes.
template <class = void>
constexpr pipeline_instance placed(std::vector<rank_id> const& group, array_view<rank_holdings const* const> by_rank, place_costs const& costs,
                                   template_value const& shape)
{
    std::vector<std::size_t> columns;
    for (std::size_t i = 0; i < by_rank.size(); ++i) {
        for (auto const rank : group) {
            if (by_rank[i]->rank == rank) {
                columns.push_back(i);
            }
        }
    }
    auto const n = static_cast<int>(columns.size());
    assignment_costs matrix{n, n, {}};
    for (auto const& layers : layers_by_position(shape)) {
        for (auto const i : columns) {
            matrix.values.push_back(costs.of(i, layers));
        }
    }
    auto const found = cheapest_assignment(matrix);
    std::vector<rank_id> ranks;
    for (auto const c : found.column_of) {
        ranks.push_back(by_rank[columns[static_cast<std::size_t>(c)]]->rank);
    }
    return make_instance(shape, ranks);
}

template <class = void>
constexpr bool has_size(template_set_value const& ready, std::size_t ranks)
{
    bool found = false;
    for (auto const& shape : ready.templates) {
        found = found || size(shape) == static_cast<int>(ranks);
    }
    return found;
}

}  // namespace detail

/// Pipelines for the survivors of `before`, ranks that waited included.
/// @pre as recompose; the pipelines before have one rank per stage and no rank in two of them
/// Cost: a small assignment per pipeline that was hit, or that of recompose.
template <class = void>
constexpr recomposition repair(array_view<pipeline_instance const> before, array_view<rank_holdings const> survivors, template_set_value const& ready,
                               array_view<tensor_bytes const> tensors, recomposition_request request)
{
    auto const ranks = static_cast<int>(survivors.size());
    if (!detail::why_no_pipeline(ready, ranks).empty()) {
        return recompose(survivors, ready, tensors, request);  // which says why
    }
    auto const by_rank = detail::ascending(survivors);
    auto const smallest = size(ready.templates.front());
    auto const fit = std::min(request.failures + 1, ranks / smallest);
    auto groups = detail::refilled(before, by_rank);
    std::size_t placed = 0;
    for (auto const& group : groups) {
        placed += group.size();
    }
    bool local = placed >= static_cast<std::size_t>(smallest);
    if (local) {
        groups = apply_local_rules(std::move(groups), smallest);
    }
    local = local && groups.size() >= static_cast<std::size_t>(fit) && groups.size() <= static_cast<std::size_t>(std::max(fit, request.microbatches));
    std::vector<pipeline_cost> prices;
    for (auto const& group : groups) {
        local = local && detail::has_size(ready, group.size());
        if (local) {
            prices.push_back(template_of_size(ready, static_cast<int>(group.size())).cost);
        }
    }
    if (!local || split_batch(prices, request.microbatches).unplaced > 0) {
        return recompose(survivors, ready, tensors, request);
    }

    auto const costs = detail::make_place_costs(by_rank, tensors, ready.templates.front().cuts.back().value);
    std::sort(groups.begin(), groups.end(), [](auto const& a, auto const& b) { return a.size() != b.size() ? a.size() < b.size() : a.front() < b.front(); });
    recomposition answer{.degraded = fit < request.failures + 1};
    prices.clear();
    for (auto const& group : groups) {
        auto const& shape = template_of_size(ready, static_cast<int>(group.size()));
        prices.push_back(shape.cost);
        bool kept = false;
        for (auto const& pipeline : before) {
            if (detail::is_whole(group, pipeline)) {
                answer.pipelines.push_back(pipeline);
                kept = true;
            }
        }
        if (!kept) {
            answer.pipelines.push_back(detail::placed(group, by_rank, costs, shape));
        }
        answer.moved += detail::missing_in(answer.pipelines.back(), by_rank, costs);
    }
    for (auto const* survivor : by_rank) {
        bool waits = true;
        for (auto const& group : groups) {
            waits = waits && std::find(group.begin(), group.end(), survivor->rank) == group.end();
        }
        if (waits) {
            answer.spares.push_back(survivor->rank);
        }
    }
    auto const split = split_batch(prices, request.microbatches);
    answer.shares = split.shares;
    answer.time = split.time;
    return answer;
}

}  // namespace rheo::inline v0
