#pragma once
// SPDX-License-Identifier: Apache-2.0

// Copies of committed tensors from ranks that hold them to ranks that need them: a reshard plan, run as rheo::reshard runs one, but by the messenger. A
// tensor may come in pieces, in several rounds and from several ranks. It waits beside the state until all of it is here and has the digest of its
// sources; then it is moved into the state.

#include <functional>

#include "executor/mpi/messenger.hpp"
#include "executor/state/resident_state.hpp"
#include "rheo/reshard/reshard_plan.hpp"

namespace rheo::inline v0 {

/// Performs the copies that touch this rank; copied tensors are in `state` when it returns. `begun` is called in each round when its first
/// messages are under way, `arrived` when a tensor is here and checked. @param of whose tensors the plan copies, the state's or a recovery's
/// (plan/keepers.hpp)  @pre state holds what this rank sends. @throws mpi::peer_lost, exit_error
void copy_tensors(mpi::messenger& messages, reshard_plan const& plan, collection const& of, resident_state& state, std::function<void()> const& begun,
                  std::function<void(tensor_id)> const& arrived);

}  // namespace rheo::inline v0
