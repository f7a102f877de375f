// SPDX-License-Identifier: Apache-2.0
// Asks a started MPI whether fault tolerance is on; the attribute is true only when it really is.
#include <mpi.h>

#include <cstdio>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    bool able = false;
#if defined(OMPI_HAVE_MPI_EXT_FTMPI)
    void* value = nullptr;
    int found = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_FT, &value, &found);
    MPI_Comm smaller = MPI_COMM_NULL;
    able = found != 0 && value != nullptr && *static_cast<int*>(value) != 0 && MPIX_Comm_shrink(MPI_COMM_WORLD, &smaller) == MPI_SUCCESS;
#endif
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        std::printf("ulfm %s\n", able ? "yes" : "no");
    }
    MPI_Finalize();
}
