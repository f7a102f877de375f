#pragma once
// SPDX-License-Identifier: Apache-2.0

// How long the ranks of one node take to exchange what several of them need to share a layer: on a grid of shards they gather the rows of its output and
// sum partial products of them, as the ranks of a group do; without one they sum the output by MPI_Allreduce.

#include <cstdint>
#include <span>
#include <vector>

#include <mpi.h>

#include "rheo/tensor/dtype.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The ranks that share this one's node. Collective; the caller frees it. @throws mpi::error, mpi::peer_lost
MPI_Comm ranks_of_this_node(MPI_Comm comm);

/// Returns when all have called it; until then this rank sleeps, so that it takes no core from one that is measured. Collective.
/// @throws as above
void wait_asleep(MPI_Comm comm);

/// The output of a layer for one item.
struct layer_output {
    std::int64_t rows = 0;
    std::int64_t width = 0;  ///< 0: the layer sends nothing on
    dtype_policy policy = fp32;
    int grid = 1;  ///< shards
};

/// [entry][d - 2]: the least time of `repeats` exchanges (and one before them) between the first d ranks, for d = 2 up to all of them; the slowest rank's. An
/// exchange is one gather of rows and one sum of partial products, or, on a grid of fewer shards than ranks, one all-reduce of floats. Nothing for no output.
/// Collective over the node; the answer is that of its first rank. @pre repeats >= 1  @throws as above
std::vector<std::vector<seconds>> measured_exchanges(MPI_Comm node, std::span<layer_output const> outputs, int repeats);

}  // namespace rheo::inline v0
