#pragma once
// SPDX-License-Identifier: Apache-2.0

// Who can write what of a checkpoint.

#include <span>
#include <vector>

#include "rheo/pipeline/instance.hpp"
#include "rheo/plan/optimizer_shards.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

/// Which ranks have all committed roles of each tensor; none for what is no parameter.
using tensor_holders = std::vector<std::vector<rank_id>>;

/// @param grid shards of the model
tensor_holders keepers_of(collection const& state, std::span<pipeline_instance const> pipelines, int grid, optimizer_shards shards);
/// By what ranks hold in a recovery. @param state of the recovery (plan/keepers.hpp)
tensor_holders keepers_of(collection const& state, std::span<rank_holdings const> holdings);

}  // namespace rheo::inline v0
