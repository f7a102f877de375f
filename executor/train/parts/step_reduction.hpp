#pragma once
// SPDX-License-Identifier: Apache-2.0

// What this rank puts into the totals of a step from its memory: the states of its accumulators, and the sums of squares of the gradients that
// are reduced here.

#include <cstdint>
#include <deque>

#include "executor/state/reduction.hpp"
#include "executor/state/resident_state.hpp"
#include "executor/train/parts/step_totals.hpp"

namespace rheo::inline v0 {

/// Elements of a gradient that are turned into floats at a time where that is no buffer of its own.
inline constexpr std::int64_t gradient_piece = std::int64_t{1} << 22;

/// Largest contributions, overflow, the loss, and what is not finite.
void add_accumulators(step_totals& totals, resident_state& resident);

/// @param room of the backend's own memory, for a piece  @pre the reductions are whole
void add_squares(step_totals& totals, resident_state& resident, std::deque<reduction> const& reductions, array<float>& room);

}  // namespace rheo::inline v0
