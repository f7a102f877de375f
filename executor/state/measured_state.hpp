#pragma once
// SPDX-License-Identifier: Apache-2.0

// The parts of plan/memory_parts.hpp as a rank has them: counted from its arrays, not from a formula, so that a run can be compared with its plan.

#include <span>

#include "executor/state/resident_state.hpp"
#include "rheo/model/parameter_bytes.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

/// What the rank has of the parameters of these layers, without reduced gradients, which reductions have. Tensors that it keeps for
/// other ranks do not count: a plan does not name them. @param layers ascending
parameter_bytes measured_state(resident_state& state, std::span<layer_id const> layers);

}  // namespace rheo::inline v0
