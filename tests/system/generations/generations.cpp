// SPDX-License-Identifier: Apache-2.0
// Seven ranks, a reserve of two pairs of communicators: ranks die one by one until two are left, or two at
// once and two more while the others agree on who is left. In every generation all members gather what
// all members say, and agree that they did. `comes-back`: one rank stands still while the others give it up, and learns that when it comes back.
// `last`: the member in the last position is lost, once by its death and once because one other holds it for lost: a single generation each.
// `computing`: a rank is lost while the others exchange no messages.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/state/collectives.hpp"
#include "executor/train/run.hpp"

using namespace rheo;

namespace {

void die()
{
    for (;;) {
        kill(getpid(), SIGKILL);
    }
}

struct death {
    rank_id who;
    int round;
    bool while_agreeing;  ///< not in the section, but while the survivors of that round's other deaths agree on who they are
};

std::vector<death> deaths_of(std::string_view how)
{
    if (how == "together") {
        return {{rank_id{1}, 3, false}, {rank_id{4}, 3, false}, {rank_id{0}, 3, true}, {rank_id{6}, 5, true}, {rank_id{5}, 5, false}};
    }
    return {{rank_id{3}, 2, false}, {rank_id{0}, 4, false}, {rank_id{6}, 6, false}, {rank_id{1}, 8, false}, {rank_id{2}, 9, false}};
}

/// The end of a job whose members have all seen what was expected, or not.
int end_of_test(mpi::generation now, bool right)
{
    run_result result;
    result.is_reporter = now.members.front() == now.self;
    bool const all_right = mpi::agree(now.recovery(), right ? 1 : 0).bits == 1;
    result.survivors = mpi::survivors_of(std::move(now)).release();
    result.exit_code = all_right ? 0 : 1;
    leave_job(result);
    return result.exit_code;
}

/// Rank 3 stops itself and continues a second later, when the others count it among those that have departed. It must learn that, and may then only end.
int come_back()
{
    auto now = mpi::first_generation(MPI_COMM_WORLD, generation_id{0}, 2);
    rank_id const stopped{3};
    mpi::agree(now.recovery(), 1);  // all have begun
    if (now.self == stopped) {
        if (fork() == 0) {  // who wakes it
            sleep(1);
            kill(getppid(), SIGCONT);
            _exit(0);
        }
        raise(SIGSTOP);
        try {
            now = mpi::next_generation(std::move(now));
            std::printf("rank %d did not learn that it is out, and continues in generation %d\n", stopped.value, now.id.value);
            std::fflush(stdout);
            for (;;) {  // the others wait for its end: the test's time limit ends them all
                pause();
            }
        } catch (mpi::excluded_from_job const& error) {
            std::printf("rank %d: %s\n", stopped.value, error.what());
            std::fflush(stdout);
        }
        die();
    }
    auto const others = now.members.size() - 1;
    now = mpi::next_generation(std::move(now), {stopped});
    bool const right = now.members.size() == others && !now.has(stopped) && !now.broken();
    return end_of_test(std::move(now), right);
}

/// Five ranks. What each survivor knows is settled before they agree, so that one agreement must be enough.
int lose_the_last()
{
    auto now = mpi::first_generation(MPI_COMM_WORLD, generation_id{0}, 2);
    auto const all = now.members;
    rank_id const self = now.self;
    mpi::agree(now.recovery(), 1);  // all have begun
    if (self == all.back()) {
        die();
    }
    while (mpi::get_failed(now.recovery()).empty()) {
        mpi::make_progress(now.recovery());
        usleep(100);
    }
    now = mpi::next_generation(std::move(now));
    bool right = now.members == std::vector<rank_id>{all.begin(), all.end() - 1} && !now.broken();
    rank_id const held_for_lost = now.members.back();
    try {  // one of them says so, and all must do the same
        now = mpi::next_generation(std::move(now), self == all.front() ? std::vector{held_for_lost} : std::vector<rank_id>{});
    } catch (mpi::excluded_from_job const&) {
        die();
    }
    right = right && now.members == std::vector<rank_id>{all.begin(), all.end() - 2} && !now.broken();
    if (!right) {
        std::printf("rank %d: %zu members in generation %d\n", self.value, now.members.size(), now.id.value);
        std::fflush(stdout);
    }
    return end_of_test(std::move(now), right);
}

/// One of four is lost while the others exchange nothing: each of them hears of it where it looks.
int lose_while_computing()
{
    auto now = mpi::first_generation(MPI_COMM_WORLD, generation_id{0}, 2);
    mpi::agree(now.recovery(), 1);  // all have begun
    if (now.self == now.members.back()) {
        die();
    }
    bool const together = mpi::unless_peer_lost([&] {
        mpi::messenger messages{now};
        for (int computed = 0; computed < 10'000; ++computed) {
            usleep(1000);
            messages.look_for_losses();
        }
    });
    auto const others = now.members.size() - 1;
    now = mpi::next_generation(std::move(now));
    bool const right = !together && now.members.size() == others;
    return end_of_test(std::move(now), right);
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (argc > 1 && std::string_view{argv[1]} == "comes-back") {
        return come_back();
    }
    if (argc > 1 && std::string_view{argv[1]} == "last") {
        return lose_the_last();
    }
    if (argc > 1 && std::string_view{argv[1]} == "computing") {
        return lose_while_computing();
    }
    auto const deaths = deaths_of(argc > 1 ? argv[1] : "one-by-one");
    auto now = mpi::first_generation(MPI_COMM_WORLD, generation_id{0}, 2);
    auto const self = now.self;
    std::vector<rank_id> expected = now.members;
    bool right = true;
    int rounds = 0;
    for (int round = 0; round < 12;) {
        for (auto const& d : deaths) {
            if (d.who == self && d.round == round && !d.while_agreeing) {
                die();
            }
        }
        bool const together = mpi::unless_peer_lost([&] {
            mpi::messenger messages{now};
            auto const all = all_gather(messages, std::vector<std::int64_t>{self.value, round});
            right = right && all.size() == now.members.size();
            for (std::size_t i = 0; right && i < all.size(); ++i) {
                right = all[i] == std::vector<std::int64_t>{now.members[i].value, round};
            }
        });
        if (auto const settled = mpi::agree(now.recovery(), together ? 1 : 0); settled.success && (settled.bits & 1) != 0) {
            ++round;
            ++rounds;
            continue;
        }
        now.revoke();
        for (auto const& d : deaths) {
            if (d.who == self && d.round == round && d.while_agreeing) {
                usleep(300);
                die();
            }
        }
        now = mpi::next_generation(std::move(now));
    }
    for (auto const& d : deaths) {
        std::erase(expected, d.who);
    }
    right = right && now.members == expected && rounds == 12;
    run_result result;
    result.is_reporter = now.members.front() == self;
    bool const all_right = mpi::agree(now.recovery(), right ? 1 : 0).bits == 1;
    auto left = mpi::survivors_of(std::move(now));
    right = all_right && left.size() == static_cast<int>(expected.size());
    result.survivors = left.release();
    result.exit_code = right ? 0 : 1;
    if (result.is_reporter) {
        std::printf("%d rounds, %zu of 7 ranks are left: %s\n", rounds, expected.size(), right ? "right" : "wrong");
    }
    leave_job(result);
}
