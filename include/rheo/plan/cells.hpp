#pragma once
// SPDX-License-Identifier: Apache-2.0

// A cell is a shard of a layer, with the number layer x grid + shard. On a grid of several shards ranks report, copy and count cells in place of layers; a
// parameter that several shards use is a tensor tied between their cells. On a grid of one a cell is a layer.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/pipeline/instance.hpp"
#include "rheo/pipeline/shares.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// The cell of a shard of a layer.
constexpr layer_id cell_of(layer_id layer, std::int64_t shard, int grid) { return layer_id{layer.value * grid + static_cast<int>(shard)}; }

/// The layer of a cell.
constexpr layer_id layer_of_cell(layer_id cell, int grid) { return layer_id{cell.value / grid}; }

/// The collection with cells in place of layers.
template <class OnlyWhenCalled = void>
collection by_cells(collection state, int grid)
{
    for (auto& use : state.uses) {
        use.layer = cell_of(use.layer, use.shard, grid);
    }
    for (auto& tensor : state.tensors) {
        tensor.layers.clear();
        for (auto const use : tensor.uses) {
            tensor.layers.push_back(state.uses[at(use)].layer);
        }
        std::sort(tensor.layers.begin(), tensor.layers.end());
        tensor.layers.erase(std::unique(tensor.layers.begin(), tensor.layers.end()), tensor.layers.end());
    }
    return state;
}

/// The collection with layers in place of cells: the inverse of by_cells.
template <class OnlyWhenCalled = void>
collection by_layers(collection state, int grid)
{
    for (auto& use : state.uses) {
        use.layer = layer_of_cell(use.layer, grid);
    }
    for (auto& tensor : state.tensors) {
        for (auto& layer : tensor.layers) {
            layer = layer_of_cell(layer, grid);
        }
        tensor.layers.erase(std::unique(tensor.layers.begin(), tensor.layers.end()), tensor.layers.end());
    }
    return state;
}

/// The layers whose cells are all in the list. @param cells ascending
template <class OnlyWhenCalled = void>
constexpr std::vector<layer_id> whole_layers(array_view<layer_id const> cells, int grid)
{
    std::vector<layer_id> layers;
    for (std::size_t first = 0, last = 0; first < cells.size(); first = last) {
        auto const layer = layer_of_cell(cells[first], grid);
        while (last < cells.size() && layer_of_cell(cells[last], grid) == layer) {
            ++last;
        }
        if (last - first == static_cast<std::size_t>(grid)) {
            layers.push_back(layer);
        }
    }
    return layers;
}

/// The cells that a rank has in the pipeline, ascending; none when it has no place there.
template <class OnlyWhenCalled = void>
constexpr std::vector<layer_id> cells_of(pipeline_instance const& pipeline, rank_id rank, int grid)
{
    std::vector<layer_id> cells;
    auto const groups = groups_of(pipeline);
    for (std::size_t position = 0; position < groups.size(); ++position) {
        for (std::size_t member = 0; member < groups[position].size(); ++member) {
            if (groups[position][member] != rank) {
                continue;
            }
            auto const run = group_at(pipeline, static_cast<int>(position), grid, static_cast<int>(member)).run(grid);
            for (auto const layer : layers_in(layers_of(pipeline, rank))) {
                for (auto shard = run.begin; shard < run.end; ++shard) {
                    cells.push_back(cell_of(layer, shard, grid));
                }
            }
        }
    }
    return cells;
}

}  // namespace rheo::inline v0
