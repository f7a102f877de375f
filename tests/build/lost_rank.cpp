// SPDX-License-Identifier: Apache-2.0
// Rank 1 is killed; the others see it, shrink, and continue with one rank less. Leaving without MPI_Finalize, which may
// hang after a failure: all by _exit, the lowest rank last.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#if RHEO_WITH_ULFM
    if (rank == 1) {
        raise(SIGKILL);
    }
    while (MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS) {
    }
    MPIX_Comm_revoke(MPI_COMM_WORLD);
    MPI_Comm survivors = MPI_COMM_NULL;
    int size = 0;
    int all = 1;
    bool good = MPIX_Comm_shrink(MPI_COMM_WORLD, &survivors) == MPI_SUCCESS && MPI_Comm_size(survivors, &size) == MPI_SUCCESS && size == 2 &&
                MPIX_Comm_agree(survivors, &all) == MPI_SUCCESS;
    if (rank == 0) {
        std::printf("%d ranks left\n", size);
        std::fflush(stdout);
        usleep(300'000);
        _exit(good ? 0 : 1);
    }
#endif
    _exit(0);
}
