#pragma once
// SPDX-License-Identifier: Apache-2.0

// The transfers of a recovery: holdings are exchanged among all ranks, committed tensors are copied,
// accumulators are moved into staging. Nothing here changes what counts; that is the merge's, after the vote.

#include <functional>
#include <vector>

#include "executor/mpi/messenger.hpp"
#include "executor/state/accumulator_moves.hpp"
#include "executor/state/resident_state.hpp"
#include "executor/state/tensor_copies.hpp"
#include "rheo/recover/replan.hpp"
#include "rheo/topology/holdings.hpp"

namespace rheo::inline v0 {

/// Exchanges holdings with all members; ascending by rank. @throws mpi::peer_lost
std::vector<rank_holdings> gather_holdings(mpi::messenger& messages, rank_holdings const& mine);

/// Performs the copies and moves of a recovery plan that touch this rank. Copied tensors stay in `state`;
/// `begun` is called after the first transfer was started, `arrived` when a tensor is here and checked. @param of whose tensors the plan copies
/// @throws mpi::peer_lost, exit_error
std::vector<staged_accumulator> transfer_state(mpi::messenger& messages, recovery_plan const& plan, collection const& of, resident_state& state,
                                               std::function<void()> const& begun, std::function<void(tensor_id)> const& arrived);

}  // namespace rheo::inline v0
