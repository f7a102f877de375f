// SPDX-License-Identifier: Apache-2.0
// What the MPI by itself needs when a rank is killed, with nothing of rheo in it: the last rank says when it will die,
// and does; all others wait in a receive from it. Prints one JSON line: seconds from the kill to the error (the first
// and the last survivor's), then revoke, agree and the two shrinks of a generation, the slowest survivor's. With --chain only
// rank 0 waits for the victim and each other for the rank before it, so that the news comes by the revocation.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <thread>

#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <mpi-ext.h>  // after mpi.h, whose macros it takes

namespace {

double now()  // one clock for all processes of a machine
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    bool const chain = argc > 1 && std::string_view{argv[1]} == "--chain";
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int const victim = size - 1;
    double death = now() + 0.3;
    MPI_Bcast(&death, 1, MPI_DOUBLE, victim, comm);
    if (rank == victim) {
        std::this_thread::sleep_for(std::chrono::duration<double>(death - now() - 0.002));
        while (now() < death) {
        }
        kill(getpid(), SIGKILL);
    }

    int word = 0;
    int const source = chain && rank > 0 ? rank - 1 : victim;
    bool const failed = MPI_Recv(&word, 1, MPI_INT, source, 1, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    double const noticed = now();
    MPIX_Comm_revoke(comm);
    double const revoked = now();
    int flag = failed ? 1 : 0;
    MPIX_Comm_agree(comm, &flag);
    double const agreed = now();
    MPI_Comm survivors = MPI_COMM_NULL;
    MPI_Comm second = MPI_COMM_NULL;
    bool const good = MPIX_Comm_shrink(comm, &survivors) == MPI_SUCCESS && MPIX_Comm_shrink(survivors, &second) == MPI_SUCCESS;
    double const shrunk = now();

    int code = 1;
    if (good && failed) {
        std::array<double, 5> mine{noticed - death, revoked - noticed, agreed - revoked, shrunk - agreed, shrunk - death};
        std::array<double, 5> most{};
        double first = 0;
        MPI_Reduce(mine.data(), most.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MAX, 0, survivors);
        MPI_Reduce(mine.data(), &first, 1, MPI_DOUBLE, MPI_MIN, 0, survivors);
        int self = 0;
        MPI_Comm_rank(survivors, &self);
        if (self == 0) {
            std::printf("{\"ranks\":%d,\"first_notice_s\":%.6f,\"last_notice_s\":%.6f,\"revoke_s\":%.6f,\"agree_s\":%.6f,\"shrink_s\":%.6f,\"total_s\":%.6f}\n",
                        size, first, most[0], most[1], most[2], most[3], most[4]);
            std::fflush(stdout);
        }
        code = 0;
        int done = 1;
        MPIX_Comm_agree(survivors, &done);  // MPI_Finalize may hang after a failure: leave together, the reporter last
        if (self == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds{300});
        }
    }
    _exit(code);
}
