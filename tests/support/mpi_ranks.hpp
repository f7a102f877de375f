#pragma once
// SPDX-License-Identifier: Apache-2.0

// The ranks that a test runs on, as one generation: MPI begins with the first test and ends with the process.

#include <mpi.h>

#include "executor/mpi/messenger.hpp"

struct mpi_ranks {
    rheo::mpi::generation members = (begin_mpi(), rheo::mpi::first_generation(MPI_COMM_WORLD, rheo::generation_id{1}, 1));
    rheo::mpi::messenger messages{members};

    rheo::rank_id self() const { return members.self; }
    bool is_reporter() const { return members.self == rheo::rank_id{0}; }

private:
    static void begin_mpi()
    {
        struct whole_process {
            whole_process() { MPI_Init(nullptr, nullptr); }
            ~whole_process() { MPI_Finalize(); }
        };
        static whole_process const begun;
    }
};
