#pragma once
// SPDX-License-Identifier: Apache-2.0

// What it really takes ranks of one node to sum up floats: what a stage of several devices does after each layer, in each direction.

#include <span>
#include <vector>

#include <mpi.h>

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The ranks that share this one's node. Collective; the caller frees it. @throws mpi::error, mpi::peer_lost
MPI_Comm ranks_of_this_node(MPI_Comm comm);

/// Returns when all have called it; until then this rank sleeps, so that it takes no core from one that is measured. Collective.
/// @throws as above
void wait_asleep(MPI_Comm comm);

/// [entry][d - 2]: the least time of `repeats` sums (and one before them) of so many bytes of floats between the first d ranks, for d = 2 up to all of
/// them; the slowest rank's. Nothing for no bytes. Collective over the node; the answer is that of its first rank. @pre repeats >= 1  @throws as above
std::vector<std::vector<seconds>> measured_all_reduce(MPI_Comm node, std::span<bytes const> sizes, int repeats);

}  // namespace rheo::inline v0
