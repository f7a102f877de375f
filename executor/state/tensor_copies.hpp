#pragma once
// SPDX-License-Identifier: Apache-2.0

// Copies of committed tensors from ranks that hold them to ranks that need them. The digest of a tensor travels with it and is compared on arrival.

#include <functional>
#include <vector>

#include "executor/mpi/messenger.hpp"
#include "executor/state/resident_state.hpp"
#include "rheo/reshard/copy.hpp"

namespace rheo::inline v0 {

/// Performs the copies of one round that touch this rank; copied tensors are in `state` when it returns.
/// `begun` is called when the transfers are posted, `arrived` when a tensor is here and checked. @throws mpi::peer_lost, exit_error
void copy_tensors(mpi::messenger& messages, std::vector<copy> const& round, resident_state& state, std::function<void()> const& begun,
                  std::function<void(tensor_id)> const& arrived);

}  // namespace rheo::inline v0
