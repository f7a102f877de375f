// SPDX-License-Identifier: Apache-2.0
// A rank that is lost while the job begins, put in front of the MPI and the C library (LD_PRELOAD): RHEO_LOSE_RANK gets the signal RHEO_LOSE_SIGNAL
// in its third MPI_Comm_dup (RHEO_LOSE_IN=dup) or when it takes the lock of the run folder (lock).
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mpi.h>

namespace {

void lose(char const* where)
{
    char const* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
    char const* const victim = std::getenv("RHEO_LOSE_RANK");
    char const* const in = std::getenv("RHEO_LOSE_IN");
    if (rank != nullptr && victim != nullptr && in != nullptr && std::strcmp(rank, victim) == 0 && std::strcmp(in, where) == 0) {
        ::kill(::getpid(), std::atoi(std::getenv("RHEO_LOSE_SIGNAL")));
    }
}

}  // namespace

extern "C" int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy)
{
    static int count = 0;
    if (++count == 3) {
        lose("dup");
    }
    return PMPI_Comm_dup(comm, copy);
}

extern "C" int fcntl(int descriptor, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void* const argument = va_arg(arguments, void*);
    va_end(arguments);
    if (command == F_OFD_SETLK) {
        lose("lock");
    }
    auto const answer = ::syscall(SYS_fcntl, descriptor, command, argument);
    return static_cast<int>(answer);
}
