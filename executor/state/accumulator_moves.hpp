#pragma once
// SPDX-License-Identifier: Apache-2.0

// Moves of gradient accumulators, with their exact maxima and flags, to the ranks that continue with them. What arrives is staged:
// it counts after the decision that ends the copies, by a merge.

#include <functional>
#include <memory>
#include <vector>

#include "executor/mpi/messenger.hpp"
#include "executor/state/resident_state.hpp"
#include "rheo/recover/salvage.hpp"

namespace rheo::inline v0 {

/// Accumulators that have arrived but do not count yet.
struct staged_accumulator {
    use_id use;
    std::unique_ptr<accumulator_state> state = std::make_unique<accumulator_state>();
    std::unique_ptr<gradient_accumulator> sums{};  ///< in messages, with that state
};

/// Performs the moves that touch this rank. `begun` is called when the transfers are posted. @throws mpi::peer_lost
std::vector<staged_accumulator> move_accumulators(mpi::messenger& messages, std::vector<accumulator_move> const& moves, resident_state& state,
                                                  std::function<void()> const& begun);

}  // namespace rheo::inline v0
