// SPDX-License-Identifier: Apache-2.0
// The ranks of `rheo generate` as a pipeline: rows go from each to the next, chosen tokens from the last to all.
#include "executor/cli/generation_part.hpp"

#include <algorithm>

#include <mpi.h>

#include "executor/cli/launch.hpp"
#include "executor/config/config.hpp"
#include "executor/faults/time_limit.hpp"
#include "executor/mpi/segment_folder.hpp"

namespace rheo::cli {

namespace {

constexpr int rows_tag = 1;
constexpr std::size_t most_of_a_message = 1 << 30;

/// Calls work(begin, count) for parts of a message that MPI's counts can say.
template <class Work>
void in_messages(std::size_t size, Work const& work)
{
    for (std::size_t begin = 0; begin < size; begin += most_of_a_message) {
        work(begin, static_cast<int>(std::min(most_of_a_message, size - begin)));
    }
}

}  // namespace

model_part generation_part()
{
    if (!launched_rank()) {
        return {};
    }
    int level = 0;
    mpi::use_own_segment_folder();
    {
        time_limit const waits{limited_start(watchdog_config{}.start, false, "MPI_Init")};
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
    }
    model_part part;
    MPI_Comm_rank(MPI_COMM_WORLD, &part.number);
    MPI_Comm_size(MPI_COMM_WORLD, &part.count);
    if (part.number > 0) {
        part.receive = [from = part.number - 1](std::span<std::byte> rows) {
            in_messages(rows.size(), [&](std::size_t begin, int count) {
                MPI_Recv(rows.data() + begin, count, MPI_BYTE, from, rows_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            });
        };
    }
    if (!part.is_last()) {
        part.send = [to = part.number + 1](std::span<std::byte const> rows) {
            in_messages(rows.size(), [&](std::size_t begin, int count) { MPI_Send(rows.data() + begin, count, MPI_BYTE, to, rows_tag, MPI_COMM_WORLD); });
        };
    }
    part.share = [last = part.count - 1](std::span<token_id> tokens) {
        MPI_Bcast(tokens.data(), static_cast<int>(tokens.size()), MPI_INT32_T, last, MPI_COMM_WORLD);
    };
    return part;
}

void leave_generation(model_part const& part)
{
    if (part.share) {
        MPI_Finalize();
    }
}

}  // namespace rheo::cli
