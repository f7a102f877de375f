#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a benchmark of several ranks measures: all begin together, and the last to end counts.

#include <functional>

#include <mpi.h>

namespace bench {

/// The slowest rank's seconds of the work, on every rank. @pre all ranks of MPI_COMM_WORLD call it
inline double seconds_of_slowest(std::function<void()> const& work)
{
    MPI_Barrier(MPI_COMM_WORLD);
    auto const begin = MPI_Wtime();
    work();
    double const mine = MPI_Wtime() - begin;
    double slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

}  // namespace bench
