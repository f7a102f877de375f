#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which ranks hold each tensor under a plan: those that use it in one of their layers, or in one of their shards of a layer if ranks share the stage.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/pipeline/instance.hpp"
#include "rheo/pipeline/shares.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/tensor/shard_grid.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Whether a rank with these layers and shards uses the tensor.
constexpr bool uses_tensor(collection const& state, tensor_info const& tensor, array_view<layer_span const> layers, shard_range run)
{
    for (auto const id : tensor.uses) {
        auto const& use = state.uses[at(id)];
        if (use.shard >= run.begin && use.shard < run.end && contains(layers, use.layer)) {
            return true;
        }
    }
    return false;
}

}  // namespace detail

/// Tensor -> the ranks of all pipelines that hold it, ascending. @param grid shards of the model  Cost: ranks x uses
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<rank_id>> holders_by_tensor(array_view<pipeline_instance const> pipelines, collection const& state, int grid)
{
    std::vector<std::vector<rank_id>> holders(state.tensors.size());
    for (auto const& pipeline : pipelines) {
        auto const groups = groups_of(pipeline);
        auto const where = placement_of(pipeline);
        for (std::size_t position = 0; position < groups.size(); ++position) {
            auto const layers = layers_at(pipeline.cuts, where, static_cast<int>(position));
            auto group = group_at(pipeline, static_cast<int>(position), grid);
            for (std::size_t member = 0; member < groups[position].size(); ++member) {
                group.self = static_cast<int>(member);
                for (std::size_t t = 0; t < holders.size(); ++t) {
                    if (detail::uses_tensor(state, state.tensors[t], layers, group.run(grid))) {
                        holders[t].push_back(groups[position][member]);
                    }
                }
            }
        }
    }
    for (auto& ranks : holders) {
        std::sort(ranks.begin(), ranks.end());
    }
    return holders;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template std::vector<std::vector<rank_id>> holders_by_tensor<>(array_view<pipeline_instance const>, collection const&, int);
#endif

}  // namespace rheo::inline v0
