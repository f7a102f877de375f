#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which ranks keep the moments of which cell with optimizer shards (plan/optimizer_shards.hpp): it follows from the pipelines alone.
//
// In a recovery moments are tensors and cells of their own: of each layer's 2 x grid cells the first `grid` have the parameters of its shards, the others
// their moments. So holdings, losses, copies and survivability count them without knowing of it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "rheo/pipeline/instance.hpp"
#include "rheo/plan/cells.hpp"
#include "rheo/plan/optimizer_shards.hpp"
#include "rheo/plan/tensor_holders.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// What recoveries know of them besides the pipelines.
struct optimizer_cells {
    optimizer_shards shards{};
    std::vector<std::int64_t> elements{};  ///< of the tensors that a cell is the first of; empty where they are not used

    friend bool operator==(optimizer_cells const&, optimizer_cells const&) = default;
};

namespace detail {

/// The first cell of a tensor: the ranks that keep the moments of that cell keep its. @param state by layers
constexpr layer_id first_cell_of(collection const& state, tensor_info const& tensor, int grid)
{
    auto const cell = [&](use_id use) { return cell_of(state.uses[at(use)].layer, state.uses[at(use)].shard, grid); };
    auto first = cell(tensor.uses.front());
    for (auto const use : tensor.uses) {
        first = std::min(first, cell(use));
    }
    return first;
}

}  // namespace detail

/// Cell -> elements of the tensors that it is the first of. @param state by layers
template <class OnlyWhenCalled = void>
std::vector<std::int64_t> elements_of_cells(collection const& state, int grid)
{
    std::vector<std::int64_t> sums;
    for (auto const& use : state.uses) {
        sums.resize(std::max(sums.size(), at(cell_of(use.layer, grid, grid))));
    }
    for (auto const& tensor : state.tensors) {
        if (tensor.is_parameter) {
            sums[at(detail::first_cell_of(state, tensor, grid))] += elements(tensor.shape);
        }
    }
    return sums;
}

/// Cell -> the ranks that keep its moments, ascending. The largest cells are dealt first, each to those of its holders that have least so far, on nodes
/// that do not keep it yet where there are any. @param elements of each cell  Cost: ranks x cells
template <class OnlyWhenCalled = void>
std::vector<std::vector<rank_id>> keepers_of_cells(array_view<pipeline_instance const> pipelines, array_view<std::int64_t const> elements, int grid,
                                                   optimizer_shards shards)
{
    std::vector<std::vector<rank_id>> holders(elements.size());
    std::vector<std::int64_t> kept;  // by rank
    for (auto const& pipeline : pipelines) {
        for (auto const rank : ranks_of(pipeline)) {
            kept.resize(std::max(kept.size(), at(rank) + 1));
            for (auto const cell : cells_of(pipeline, rank, grid)) {
                holders[at(cell)].push_back(rank);
            }
        }
    }
    std::vector<std::size_t> order(elements.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return elements[a] > elements[b]; });
    std::vector<std::vector<rank_id>> keepers(elements.size());
    for (auto const cell : order) {
        auto& free = holders[cell];
        std::sort(free.begin(), free.end());
        auto& chosen = keepers[cell];
        while (!free.empty() && chosen.size() < static_cast<std::size_t>(shards.copies)) {
            auto const shares_node = [&](rank_id rank) {
                return std::any_of(chosen.begin(), chosen.end(),
                                   [&](rank_id other) { return other.value / shards.node_size == rank.value / shards.node_size; });
            };
            auto const best = std::min_element(
                free.begin(), free.end(), [&](rank_id a, rank_id b) { return shares_node(a) != shares_node(b) ? shares_node(b) : kept[at(a)] < kept[at(b)]; });
            kept[at(*best)] += elements[cell];
            chosen.push_back(*best);
            free.erase(best);
        }
        std::sort(chosen.begin(), chosen.end());
    }
    return keepers;
}

/// Tensor -> the ranks that keep its moments, ascending: all holders without optimizer shards. @param state by layers
template <class OnlyWhenCalled = void>
std::vector<std::vector<rank_id>> keepers_by_tensor(array_view<pipeline_instance const> pipelines, collection const& state, int grid, optimizer_shards shards)
{
    auto keepers = holders_by_tensor(pipelines, state, grid);
    if (!shards.are_used()) {
        return keepers;
    }
    auto const of_cells = keepers_of_cells(pipelines, elements_of_cells(state, grid), grid, shards);
    for (std::size_t t = 0; t < keepers.size(); ++t) {
        if (state.tensors[t].is_parameter) {
            keepers[t] = of_cells[at(detail::first_cell_of(state, state.tensors[t], grid))];
        }
    }
    return keepers;
}

/// Which of the ranks that keep a tensor's moments sends its new parameters to the holders that do not. @pre there is one
constexpr rank_id sender_of(array_view<rank_id const> keepers, tensor_id t) { return keepers[at(t) % keepers.size()]; }

/// The collection of a recovery with optimizer shards: first the parameters, then their moments in the same order. @param state by layers
/// @param stores_apart stages read a copy of the parameters (dtype_policy)
template <class OnlyWhenCalled = void>
collection with_moment_cells(collection const& state, int grid, bool stores_apart)
{
    auto cells = by_cells(state, 2 * grid);
    for (auto& tensor : cells.tensors) {
        tensor.committed = stores_apart ? committed_roles::copy : committed_roles::parameter;
    }
    for (std::size_t t = 0; t < state.tensors.size(); ++t) {
        auto moments = cells.tensors[t];
        moments.name += stores_apart ? " (optimizer)" : " (moments)";
        moments.committed = stores_apart ? committed_roles::optimizer : committed_roles::moments;
        moments.uses.clear();
        moments.layers = {layer_id{moments.layers.front().value + grid}};
        cells.tensors.push_back(std::move(moments));
    }
    return cells;
}

/// The tensor of a job's collection that one of a recovery's is, or whose moments it is. @param state of the recovery
constexpr tensor_id tensor_of(collection const& state, tensor_id t)
{
    auto const half = static_cast<std::int32_t>(state.tensors.size() / 2);
    return are_of_keepers(state.tensors[at(t)].committed) ? tensor_id{t.value - half} : t;
}

/// The cells that each rank has in the pipelines, in the order of `ranks`, ascending. @param cells_per_layer with those of moments
template <class OnlyWhenCalled = void>
std::vector<std::vector<layer_id>> cells_by_rank(array_view<pipeline_instance const> pipelines, array_view<rank_id const> ranks, int cells_per_layer,
                                                 optimizer_cells const& optimizer)
{
    auto const grid = optimizer.shards.are_used() ? cells_per_layer / 2 : cells_per_layer;
    std::vector<std::vector<layer_id>> cells(ranks.size());
    auto const places = places_in(pipelines);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        for (auto const& place : places_of(places, ranks[r])) {
            auto const& pipeline = pipelines[place.pipeline];
            auto const here = cells_per_layer == 1 ? layers_in(layers_of(pipeline, ranks[r])) : cells_of(pipeline, ranks[r], grid);
            cells[r].insert(cells[r].end(), here.begin(), here.end());
        }
    }
    if (!optimizer.shards.are_used()) {
        return cells;
    }
    auto const keepers = keepers_of_cells(pipelines, optimizer.elements, grid, optimizer.shards);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        std::vector<layer_id> all;
        for (auto const cell : cells[r]) {
            auto const layer = layer_of_cell(cell, grid);
            auto const shard = cell.value % grid;
            all.push_back(cell_of(layer, shard, cells_per_layer));
            if (auto const& some = keepers[at(cell)]; std::binary_search(some.begin(), some.end(), ranks[r])) {
                all.push_back(cell_of(layer, grid + shard, cells_per_layer));
            }
        }
        std::sort(all.begin(), all.end());
        cells[r] = std::move(all);
    }
    return cells;
}

/// Cells of parameters alone, numbered without those of moments. @param cells ascending
template <class OnlyWhenCalled = void>
std::vector<layer_id> without_moments(array_view<layer_id const> cells, int grid)
{
    std::vector<layer_id> parameters;
    for (auto const cell : cells) {
        if (auto const shard = cell.value % (2 * grid); shard < grid) {
            parameters.push_back(cell_of(layer_of_cell(cell, 2 * grid), shard, grid));
        }
    }
    return parameters;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template std::vector<std::vector<rank_id>> keepers_of_cells<>(array_view<pipeline_instance const>, array_view<std::int64_t const>, int,
                                                                     optimizer_shards);
extern template std::vector<std::vector<layer_id>> cells_by_rank<>(array_view<pipeline_instance const>, array_view<rank_id const>, int, optimizer_cells const&);
#endif

}  // namespace rheo::inline v0
