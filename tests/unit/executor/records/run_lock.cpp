// SPDX-License-Identifier: Apache-2.0
// One launch at a time in a folder, whichever of its ranks dies.
#include "executor/records/run_lock.hpp"

#include <csignal>
#include <string>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

#include "executor/records/record_files.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

bool can_take(std::string const& folder)
{
    run_lock other;
    return other.take(folder, {}).granted;
}

}  // namespace

TEST_CASE("run_lock: second launch is rejected while one lives")
{
    temporary_folder folder;
    auto const run = folder.path.string();
    {
        run_lock first;
        CHECK(first.take(run, {}).granted);
        run_lock second;
        auto const answer = second.take(run, {});
        CHECK_FALSE(answer.granted);
        CHECK_THAT(answer.message, StartsWith("run folder " + run + ": another launch is at work in it, begun 2"));
        CHECK_THAT(answer.message, ContainsSubstring(" UTC by process " + std::to_string(::getpid()) + " on host "));
        CHECK(second.join(run).granted);  // as a rank of the same job does
        first.release();
        CHECK_FALSE(can_take(run));  // a rank of the job lives
        auto moved = std::move(second);
        CHECK_FALSE(can_take(run));
    }
    CHECK(can_take(run));
    run_lock again;
    CHECK(again.take(run, {}).granted);
    CHECK(again.take(run, {}).granted);  // its own is no other launch
    CHECK_FALSE(can_take(run));
    CHECK_THROWS_WITH(again.take(run + "/not-there", {}), "run folder: '" + run + "/not-there/lock' cannot be made: No such file or directory");
}

TEST_CASE("run_lock: a killed process leaves no lock")
{
    temporary_folder folder;
    auto const run = folder.path.string();
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    auto const child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        run_lock taken;
        char const byte = taken.take(run, {}).granted ? 'y' : 'n';
        (void)!::write(ready[1], &byte, 1);
        for (;;) {
            ::pause();
        }
    }
    char byte = 'n';
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    CHECK(byte == 'y');
    CHECK_FALSE(can_take(run));
    run_lock joined;
    CHECK(joined.join(run).granted);
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    ::close(ready[0]);
    ::close(ready[1]);
    CHECK_FALSE(can_take(run));
    joined.release();
    CHECK(can_take(run));
}

TEST_CASE("run_lock: a new launch waits for an ending one")
{
    temporary_folder folder;
    auto const run = folder.path.string();
    run_lock mine;
    REQUIRE(mine.take(run, {}).granted);
    auto const child = ::fork();  // shares the open file, and with it the lock
    REQUIRE(child >= 0);
    if (child == 0) {
        ::usleep(200'000);
        ::_exit(0);
    }
    mine.release();
    CHECK_FALSE(can_take(run));
    run_lock next;
    CHECK(next.take(run, seconds{20}).granted);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
}
