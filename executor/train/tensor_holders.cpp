// SPDX-License-Identifier: Apache-2.0
#include "executor/train/tensor_holders.hpp"

#include <algorithm>

#include "rheo/plan/keepers.hpp"

namespace rheo::inline v0 {

tensor_holders keepers_of(collection const& state, std::span<pipeline_instance const> pipelines, int grid, optimizer_shards shards)
{
    auto holders = keepers_by_tensor(array_view{pipelines}, state, grid, shards);
    for (std::size_t t = 0; t < holders.size(); ++t) {
        if (!state.tensors[t].is_parameter) {
            holders[t].clear();
        }
    }
    return holders;
}

tensor_holders keepers_of(collection const& state, std::span<rank_holdings const> holdings)
{
    tensor_holders holders(state.tensors.size());
    for (auto const& rank : holdings) {
        for (std::size_t t = 0; t < holders.size(); ++t) {
            auto const& tensor = state.tensors[t];
            auto const holds = [&](layer_id l) { return std::binary_search(rank.layers.begin(), rank.layers.end(), l); };
            if (tensor.is_parameter && std::any_of(tensor.layers.begin(), tensor.layers.end(), holds)) {
                holders[t].push_back(rank.rank);
            }
        }
    }
    if (!state.tensors.empty() && are_of_keepers(state.tensors.back().committed)) {  // who keeps them holds the parameter, too
        holders.erase(holders.begin(), holders.begin() + std::ssize(holders) / 2);
    }
    return holders;
}

}  // namespace rheo::inline v0
