#pragma once
// SPDX-License-Identifier: Apache-2.0

// Who holds a tensor under a plan: the ranks that make a use of it. Where groups have the shards of a grid that is a rank whose layers and shards it
// belongs to; on a grid of one, a rank that has one of its layers.

#include <algorithm>
#include <vector>

#include "rheo/pipeline/instance.hpp"
#include "rheo/pipeline/shares.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/tensor/shard_grid.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// Whether a rank with these layers and shards makes the use.
constexpr bool makes_use(use_info const& use, array_view<layer_span const> layers, shard_range run)
{
    return use.shard >= run.begin && use.shard < run.end && contains(layers, use.layer);
}

/// Whether a rank with these layers and shards holds the tensor.
template <class OnlyWhenCalled = void>
constexpr bool holds_tensor(collection const& state, tensor_id tensor, array_view<layer_span const> layers, shard_range run)
{
    for (auto const use : state.tensors[at(tensor)].uses) {
        if (makes_use(state.uses[at(use)], layers, run)) {
            return true;
        }
    }
    return false;
}

/// The ranks of a pipeline that hold the tensor, by position and member. @param grid shards of the model
template <class OnlyWhenCalled = void>
constexpr std::vector<rank_id> holders_of(pipeline_instance const& pipeline, collection const& state, tensor_id tensor, int grid)
{
    std::vector<rank_id> holders;
    auto const groups = groups_of(pipeline);
    auto const where = placement_of(pipeline);
    for (std::size_t position = 0; position < groups.size(); ++position) {
        auto const layers = layers_at(pipeline.cuts, where, static_cast<int>(position));
        auto const degree = static_cast<int>(groups[position].size());
        for (int member = 0; member < degree; ++member) {
            if (holds_tensor(state, tensor, layers, even_group(grid, degree, member).run(grid))) {
                holders.push_back(groups[position][static_cast<std::size_t>(member)]);
            }
        }
    }
    return holders;
}

/// The holders in all pipelines, ascending.
template <class OnlyWhenCalled = void>
constexpr std::vector<rank_id> holders_of(array_view<pipeline_instance const> pipelines, collection const& state, tensor_id tensor, int grid)
{
    std::vector<rank_id> holders;
    for (auto const& pipeline : pipelines) {
        auto const here = holders_of(pipeline, state, tensor, grid);
        holders.insert(holders.end(), here.begin(), here.end());
    }
    std::sort(holders.begin(), holders.end());
    return holders;
}

}  // namespace rheo::inline v0
