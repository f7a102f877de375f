#pragma once
// SPDX-License-Identifier: Apache-2.0

// The tensors of a reduction unit by who holds them: where groups have the shards of a grid, the tensors of a layer have different holders, and each set of
// holders sums what it has in common. Elsewhere a unit is one part.

#include <deque>
#include <vector>

#include "executor/nccl/connections.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/tensor/collection.hpp"

namespace rheo::inline v0 {

struct reduction_part {
    int number = 0;  ///< among all parts of the plan: messages carry it
    std::size_t unit = 0;
    reduction_unit sums{};           ///< of the unit, the tensors with these holders
    std::vector<rank_id> holders{};  ///< ascending
    std::vector<rank_id> keepers{};  ///< of them, those that keep moments
};

/// The parts that a rank takes part in, in the order in which all ranks number them. @param grid shards of the model
std::vector<reduction_part> reduction_parts(plan const& where, std::vector<reduction_unit> const& units, collection const& state, int grid, rank_id self);

/// Those who sum parts together, with these in the order in which rows await them. @param parts of a rank
std::vector<nccl::connection> groups_of(std::deque<reduction_part> const& parts, int layers);

}  // namespace rheo::inline v0
