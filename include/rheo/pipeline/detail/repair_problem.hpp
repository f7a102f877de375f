#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a repair begins with: who is left of each pipeline, who replaces those that are gone, who is kept waiting, and the sizes and places there are
// to choose from.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/pipeline/detail/choose_sizes.hpp"
#include "rheo/pipeline/detail/place_costs.hpp"
#include "rheo/pipeline/local_rules.hpp"
#include "rheo/pipeline/recompose.hpp"
#include "rheo/reshard/assignment.hpp"
#include "rheo/reshard/tensor_bytes.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0::detail {

/// All ranks that pipelines may be made of: without those that are kept waiting, as far as the others are `needed` ranks.
template <class OnlyWhenCalled = void>
constexpr std::vector<rank_holdings const*> available(array_view<pipeline_instance const> before, array_view<rank_holdings const* const> survivors,
                                                      int reserved_spares, int needed)
{
    std::vector<rank_id> placed;
    for (auto const& pipeline : before) {
        auto const ranks = ranks_of(pipeline);
        placed.insert(placed.end(), ranks.begin(), ranks.end());
    }
    std::sort(placed.begin(), placed.end());
    auto const waits = [&](rank_holdings const* survivor) { return !std::binary_search(placed.begin(), placed.end(), survivor->rank); };
    std::ptrdiff_t waiting = 0;
    for (auto const* survivor : survivors) {
        waiting += waits(survivor) ? 1 : 0;
    }
    auto const all = static_cast<std::ptrdiff_t>(survivors.size());
    auto const gone = static_cast<std::ptrdiff_t>(placed.size()) - (all - waiting);
    auto const kept = std::max<std::ptrdiff_t>(0, std::min({std::ptrdiff_t{reserved_spares}, waiting - gone, all - needed}));
    std::vector<rank_holdings const*> result;
    for (auto const* survivor : survivors) {
        bool const may_be_kept = waits(survivor);
        if (!may_be_kept || waiting > kept) {
            result.push_back(survivor);
        }
        waiting -= may_be_kept ? 1 : 0;
    }
    return result;
}

/// Where a rank is among some that ascend; their number when it is not there.
template <class OnlyWhenCalled = void>
constexpr std::size_t index_of(array_view<rank_holdings const* const> by_rank, rank_id rank)
{
    auto const found = std::partition_point(by_rank.begin(), by_rank.end(), [&](rank_holdings const* holds) { return holds->rank < rank; });
    return found != by_rank.end() && (*found)->rank == rank ? static_cast<std::size_t>(found - by_rank.begin()) : by_rank.size();
}

/// The survivors of each pipeline, with ranks that waited in the places of those that are gone.
template <class OnlyWhenCalled = void>
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
            if (auto const i = index_of(survivors, rank); i < survivors.size()) {
                groups.back().push_back(rank);
                waits[i] = 0;
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

/// The pipeline of exactly these ranks, in this order; null when there is none. @param places places_in of the pipelines
template <class OnlyWhenCalled = void>
constexpr pipeline_instance const* find_pipeline(array_view<pipeline_instance const> pipelines, array_view<rank_place const> places,
                                                 std::vector<rank_id> const& ranks)
{
    for (auto const& place : places_of(places, ranks.front())) {
        if (ranks_of(pipelines[place.pipeline]) == ranks) {
            return &pipelines[place.pipeline];
        }
    }
    return nullptr;
}

/// What the ranks of a pipeline miss where they are.
template <class OnlyWhenCalled = void>
constexpr bytes missing_in(pipeline_instance const& pipeline, array_view<rank_holdings const* const> by_rank, place_costs const& costs)
{
    bytes sum;
    for (auto const rank : ranks_of(pipeline)) {
        sum += bytes{costs.of(index_of(by_rank, rank), layers_of(pipeline, rank))};
    }
    return sum;
}

/// A pipeline of the group's ranks, each where the group misses the fewest bytes.
template <class OnlyWhenCalled = void>
constexpr pipeline_instance placed(std::vector<rank_id> const& group, array_view<rank_holdings const* const> by_rank, place_costs const& costs,
                                   template_value const& shape)
{
    std::vector<std::size_t> columns;
    for (auto const rank : group) {
        columns.push_back(index_of(by_rank, rank));
    }
    std::sort(columns.begin(), columns.end());
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

template <class OnlyWhenCalled = void>
constexpr bool has_size(template_set_value const& ready, std::size_t ranks)
{
    bool found = false;
    for (auto const& shape : ready.templates) {
        found = found || size(shape) == static_cast<int>(ranks);
    }
    return found;
}

/// Who can be placed, and what there is to choose from.
struct repair_problem {
    std::vector<rank_holdings const*> survivors{};  ///< all, ascending by rank
    std::vector<rank_holdings const*> usable{};     ///< without those that are kept waiting
    int fewest = 0;                                 ///< pipelines: f + 1, or as many as fit
    size_problem sizes{};
    size_optimum optimum{};  ///< of no ranks where there is no room for all microbatches
    place_costs costs{};
    rank_groups groups{};  ///< the ranks of each pipeline before, refilled
    int in_places = 0;     ///< ranks of the groups
};

/// No choice of sizes takes longer, in whole nanoseconds.
template <class OnlyWhenCalled = void>
constexpr std::int64_t longest_step(size_problem const& problem)
{
    std::int64_t step = 0;
    for (auto const cost : problem.costs) {
        step = std::max(step, time_of(cost, std::min<std::int64_t>(cost.most, problem.microbatches)));
    }
    return step;
}

/// @pre the survivors are enough for the smallest template
template <class OnlyWhenCalled = void>
constexpr repair_problem make_repair_problem(array_view<pipeline_instance const> before, array_view<rank_holdings const> survivors,
                                             template_set_value const& ready, array_view<tensor_bytes const> tensors, recomposition_request request,
                                             int reserved_spares)
{
    repair_problem p{.survivors = ascending(survivors)};
    auto const smallest = size(ready.templates.front());
    p.fewest = std::min(request.failures + 1, static_cast<int>(survivors.size()) / smallest);
    p.usable = available(before, p.survivors, reserved_spares, p.fewest * smallest);
    p.sizes = make_size_problem(ready, static_cast<int>(p.usable.size()), request.failures, request.microbatches);
    p.optimum = least_deadline(p.sizes);
    if (p.optimum.used == 0 && p.usable.size() < p.survivors.size()) {  // those that are kept waiting have the memory
        p.usable = p.survivors;
        p.sizes = make_size_problem(ready, static_cast<int>(p.usable.size()), request.failures, request.microbatches);
        p.optimum = least_deadline(p.sizes);
    }
    if (p.optimum.used == 0) {
        return p;
    }
    p.costs = make_place_costs(p.usable, tensors, ready.templates.front().cuts.back().value);
    p.groups = refilled(before, p.usable);
    for (auto const& group : p.groups) {
        p.in_places += static_cast<int>(group.size());
    }
    return p;
}

}  // namespace rheo::inline v0::detail
