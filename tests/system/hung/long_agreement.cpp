// SPDX-License-Identifier: Apache-2.0
// A stand-in for what Open MPI 5.0.11 does now and then, put in front of it (LD_PRELOAD): an agreement in which a rank waits for seconds while several
// others die never returns. And a slow file system: the report takes two seconds to get its name.
#include <chrono>
#include <string_view>

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

extern "C" int rename(char const* from, char const* to)
{
    if (std::string_view{to}.ends_with("/report.json")) {
        ::sleep(2);
    }
    return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

#if defined(OMPI_HAVE_MPI_EXT_FTMPI)
extern "C" int PMPIX_Comm_agree(MPI_Comm comm, int* flag);

extern "C" int MPIX_Comm_agree(MPI_Comm comm, int* flag)
{
    auto const began = std::chrono::steady_clock::now();
    auto const code = PMPIX_Comm_agree(comm, flag);
    while (code != MPI_SUCCESS && std::chrono::steady_clock::now() - began > std::chrono::seconds{1}) {
        ::pause();
    }
    return code;
}
#endif
