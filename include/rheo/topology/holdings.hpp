#pragma once
// SPDX-License-Identifier: Apache-2.0

// What one rank holds of a job, as it reports to the others after a loss: whole layers of committed state
// at one version, and for each use the microbatches whose gradients its accumulator has summed. Where ranks share
// stages a cell (plan/cells.hpp) stands for a layer.

#include <vector>

#include "rheo/topology/microbatch_set.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

struct use_holding {
    use_id use;
    microbatch_set done;

    friend constexpr bool operator==(use_holding const&, use_holding const&) = default;
};

struct rank_holdings {
    rank_id rank;
    step_id version;                ///< steps committed: the state held is the one before step `version`
    std::vector<layer_id> layers;   ///< ascending
    std::vector<use_holding> uses;  ///< ascending by use, only of held layers

    friend constexpr bool operator==(rank_holdings const&, rank_holdings const&) = default;
};

}  // namespace rheo::inline v0
