#pragma once
// SPDX-License-Identifier: Apache-2.0

// The transfers of a recovery: what every rank holds is told to all, committed tensors are copied,
// accumulators are moved into staging. Nothing here changes what counts; that is the merge's, after the vote.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "executor/mpi/messenger.hpp"
#include "executor/state/resident_state.hpp"
#include "rheo/recover/replan.hpp"
#include "rheo/topology/holdings.hpp"

namespace rheo::inline v0 {

/// A copied tensor is not what its holder said it was; exit code 6.
struct transfer_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Exchanges holdings with all members; ascending by rank. @throws mpi::peer_lost
std::vector<rank_holdings> gather_holdings(mpi::messenger& messages, rank_holdings const& mine);

/// Accumulators that have arrived but do not count yet.
struct staged_accumulator {
    use_id use;
    std::unique_ptr<accumulator_state> state = std::make_unique<accumulator_state>();
    std::unique_ptr<gradient_accumulator> sums{};  ///< in messages, with that state
};

/// Performs the copies and moves of a recovery plan that touch this rank. Copied tensors stay in `state`;
/// `begun` is called after the first transfer was started, `arrived` when a tensor is here and checked.
/// @throws mpi::peer_lost, transfer_error
std::vector<staged_accumulator> transfer(mpi::messenger& messages, recovery_plan const& plan, resident_state& state, std::function<void()> const& begun,
                                         std::function<void(tensor_id)> const& arrived);

}  // namespace rheo::inline v0
