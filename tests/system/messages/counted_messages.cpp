// SPDX-License-Identifier: Apache-2.0
// Real ranks, of which one dies: what the others send, all of them together, from the loss to the vote of the recovery, against
// the number of ranks; and how often a rank polls in a long wait, which may grow with the logarithm of its length.
#include <chrono>
#include <cstdio>
#include <thread>

#include <signal.h>
#include <unistd.h>

#include "executor/state/collectives.hpp"
#include "executor/train/run.hpp"

using namespace rheo;

namespace {

int rounds_of(int ranks)
{
    int rounds = 0;
    while (1 << rounds < ranks) {
        ++rounds;
    }
    return rounds;
}

/// Polls of a wait of 200 ms.
std::int64_t polls_of_a_long_wait(mpi::generation const& now, bool& right)
{
    mpi::messenger messages{now};
    std::int64_t number = 0;
    auto const& members = now.members;
    if (now.self == members.front()) {
        std::this_thread::sleep_for(std::chrono::milliseconds{200});
        for (std::size_t i = 1; i < members.size(); ++i) {
            messages.wait(messages.send(members[i], mpi::channel::control, 0, std::span<std::int64_t const>{&number, 1}));
        }
    } else {
        messages.wait(messages.receive(members.front(), mpi::channel::control, 0, std::span{&number, 1}));
    }
    auto const polls = messages.done_so_far().polls;
    if (polls >= 3500) {
        std::printf("rank %d: %lld polls in a wait of 200 ms\n", now.self.value, static_cast<long long>(polls));
    }
    right = right && polls < 3500;  // spins, a millisecond of yields, then 64 ln(200 / 1) sleeps at most; with equal sleeps 4500
    return polls;
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    auto now = mpi::first_generation(MPI_COMM_WORLD, generation_id{0}, 2);
    bool right = true;
    polls_of_a_long_wait(now, right);
    auto const victim = now.members[now.members.size() / 2];
    bool const lost = !mpi::unless_peer_lost([&] {
        mpi::messenger messages{now};
        wait_for_all(messages);
        if (now.self == victim) {
            for (;;) {
                ::kill(::getpid(), SIGKILL);
            }
        }
        wait_for_all(messages);
    });
    mpi::agree(now.recovery(), 0);
    now.revoke();
    now = mpi::next_generation(std::move(now));
    auto const ranks = static_cast<int>(now.members.size());
    std::int64_t sent = 0;
    std::int64_t bytes = 0;
    bool const together = mpi::unless_peer_lost([&] {
        mpi::messenger messages{now};
        std::vector<std::int64_t> const holds(40, now.self.value);
        auto const all = all_gather(messages, holds);
        right = right && all.size() == now.members.size() && all.back() == std::vector<std::int64_t>(40, now.members.back().value);
        std::uint64_t const plan = 0x1234567812345678;
        right = right && same_everywhere(messages, {&plan, 1});
        wait_for_all(messages);
        step_scalars sums{{}, {messages.done_so_far().sent, messages.done_so_far().bytes}};
        all_reduce(messages, sums);
        sent = sums.sums[0];
        bytes = sums.sums[1];
    });
    right = right && lost && together && sent <= 8 * (ranks - 1) && bytes <= 50 * 8 * std::int64_t{ranks} * (ranks + rounds_of(ranks)) + 1000 * ranks;
    run_result result;
    result.is_reporter = now.members.front() == now.self;
    bool const all_right = mpi::agree(now.recovery(), right ? 1 : 0).bits == 1;
    result.survivors = mpi::survivors_of(std::move(now)).release();
    result.exit_code = all_right ? 0 : 1;
    if (result.is_reporter) {
        std::printf("%d ranks are left: %lld messages, %lld bytes: %s\n", ranks, static_cast<long long>(sent), static_cast<long long>(bytes),
                    all_right ? "right" : "wrong");
    }
    leave_job(result);
}
