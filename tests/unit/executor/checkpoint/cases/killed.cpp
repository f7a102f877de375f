// SPDX-License-Identifier: Apache-2.0
// A process that writes checkpoints is killed, really, at every named point and at random times. Anyone who comes after it finds a whole
// checkpoint with the bits of its step: the one before, or the new one once it has its name.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "unit/executor/checkpoint/small_job.hpp"

using namespace rheo;

namespace {

/// Runs `work` in a process of its own and waits for its end, or kills it after a while. True when it was ended by SIGKILL.
template <class Work>
bool killed(Work work, std::optional<int> microseconds = std::nullopt)
{
    auto const child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        work();
        ::_exit(0);
    }
    if (microseconds) {
        ::usleep(static_cast<useconds_t>(*microseconds));
        ::kill(child, SIGKILL);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/// The newest one is whole and has the bits of its step; nothing had to be skipped for it.
step_id newest(std::filesystem::path const& run)
{
    auto const found = find_newest_checkpoint(run);
    INFO((found.skipped.empty() ? "" : found.skipped.front()));
    REQUIRE(found.skipped.empty());
    REQUIRE(found.newest);
    CHECK(small_job::same(*found.newest, *small_job::state_after(found.newest->step())));
    return found.newest->step();
}

}  // namespace

TEST_CASE("killed: kill at each point keeps the previous one")
{
    for (std::size_t p = 0; p <= static_cast<std::size_t>(checkpoint_point::removing); ++p) {
        auto const point = static_cast<checkpoint_point>(p);
        INFO(checkpoint_point_names[p]);
        temporary_folder const run;
        REQUIRE(small_job::write(run.path, step_id{1}, 2).state == writer_state::published);
        CHECK(killed([&] {
            small_job::write(run.path, step_id{2}, 2, 1, 1, [&](checkpoint_point at) {
                if (at == point) {
                    ::kill(::getpid(), SIGKILL);
                }
            });
        }));
        CHECK(newest(run.path) == step_id{point < checkpoint_point::renamed ? 1 : 2});

        // The same command continues: what was left behind goes away, the step is rewritten in a later generation.
        drop_unfinished_checkpoints(run.path, generation_id{2});
        for (auto const& entry : std::filesystem::directory_iterator{run.path}) {
            CHECK(entry.path().filename().string().starts_with("step-"));
        }
        REQUIRE(small_job::write(run.path, step_id{2}, 3, 1, 1, {}, generation_id{2}).state == writer_state::published);
        CHECK(newest(run.path) == step_id{2});
        CHECK(checkpoint_steps(run.path) == std::vector{step_id{2}});
    }
}

TEST_CASE("killed: kill at random times keeps the previous one")
{
    std::mt19937 draw{5};
    temporary_folder const run;
    auto const start = std::chrono::steady_clock::now();
    REQUIRE(small_job::write(run.path, step_id{1}, 2).state == writer_state::published);
    auto const once = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count();
    auto const longest = static_cast<unsigned>(std::max<std::int64_t>(30000, 4 * once));  // several are written before it dies
    auto reached = step_id{1};
    for (int trial = 0; trial < 25; ++trial) {
        auto const began = reached;
        generation_id const generation{trial + 2};
        drop_unfinished_checkpoints(run.path, generation);
        CHECK(killed(
            [&] {
                for (auto step = began;;) {
                    ++step;
                    small_job::write(run.path, step, 2, 2, 1, {}, generation);
                }
            },
            static_cast<int>(draw() % longest)));
        reached = newest(run.path);
        CHECK(reached >= began);
    }
    CHECK(reached > step_id{1});
}
