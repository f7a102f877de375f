// SPDX-License-Identifier: Apache-2.0
// Hung ranks: when patience ends, as values without a clock; then real processes that hang, are stopped, or only wait.
#include "executor/faults/watchdog.hpp"

#include <chrono>

#include <signal.h>
#include <unistd.h>

#include "executor/faults/time_limit.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"

using namespace rheo;

namespace {

constexpr watchdog_config quick{.factor = 5, .least = {0.3}, .stopped = {0.4}};

constexpr bool patience_is_counted()
{
    patience p;
    p.observe(1, {0.1});
    bool good = p.observe(1, {0.1}) == seconds{0.1} && p.observe(1, {0.2}) == seconds{0.1} + seconds{0.2};
    good = good && p.observe(2, {0.5}) == seconds{0.0} && p.longest == seconds{0.1} + seconds{0.2};
    p.observe(2, {0.1});
    p.forgive();
    return good && p.observe(2, {0.1}) == seconds{0.1};
}
static_assert(patience_is_counted());

static_assert(deadline_of({.factor = 20, .least = {60}, .stopped = {}}, {.longest = {1.0}}) == seconds{60.0});
static_assert(deadline_of({.factor = 20, .least = {60}, .stopped = {}}, {.longest = {4.0}}) == seconds{80.0});

void sleep_for(double s) { std::this_thread::sleep_for(std::chrono::duration<double>{s}); }

/// A launch name that no other test uses.
std::uint64_t launch_name()
{
    static std::uint64_t next = 0;
    return (static_cast<std::uint64_t>(::getpid()) << 8) + next++;
}

void make_progress(watchdog& dog, double s)
{
    for (double spent = 0; spent < s; spent += 0.01) {
        dog.progress();
        sleep_for(0.01);
    }
}

}  // namespace

TEST_CASE("watchdog: kills a rank with a hung operation")
{
    process hangs{[] {
        watchdog dog{quick, rank_id{0}};
        make_progress(dog, 0.1);
        sleep_for(60);
    }};
    CHECK(hangs.ended_within(20) == SIGKILL);
}

TEST_CASE("watchdog: progress and waiting are not a hang")
{
    process works{[] {
        watchdog dog{quick, rank_id{0}};
        make_progress(dog, 0.8);
        {
            watchdog::wait const waits{&dog};
            sleep_for(0.8);
        }
        make_progress(dog, 0.1);
    }};
    process patient{[] {
        watchdog const dog{{.factor = 0, .least = {0.1}, .stopped = {}}, rank_id{0}};
        sleep_for(0.8);
    }};
    CHECK(works.ended_within(20) == 0);
    CHECK(patient.ended_within(20) == 0);
}

TEST_CASE("watchdog: a blocked rank ends with the right exit code")
{
    process blocks{[] {
        watchdog dog{quick, rank_id{0}};
        watchdog::wait const waits{&dog};
        sleep_for(60);
    }};
    process last{[] {
        watchdog dog{quick, rank_id{0}};
        dog.all_is_written(75);
        watchdog::wait const waits{&dog};
        sleep_for(60);
    }};
    CHECK(last.ended_within(20) == 75);
    CHECK_FALSE(blocks.ended_within(0.5));
    CHECK(blocks.ended_within(20) == SIGKILL);
}

TEST_CASE("watchdog: a limited wait ends with its exit code")
{
    process late{[] {
        time_limit const waits{{.limit = {0.3}, .exit_code = 5}};
        sleep_for(60);
    }};
    process in_time{[] {
        {
            time_limit const waits{{.limit = {0.5}, .exit_code = 5}};
            time_limit const none{{.exit_code = 5}};
        }
        sleep_for(1);
    }};
    CHECK(late.ended_within(20) == 5);
    CHECK(in_time.ended_within(20) == 0);
}

TEST_CASE("watchdog: neighbours kill a stopped rank in time")
{
    auto const launch = launch_name();
    auto const take_part = [&](int rank) {
        return [=] {
            watchdog dog{quick, rank_id{rank}};
            dog.join_host(launch, 3);
            make_progress(dog, 6);
        };
    };
    process first{take_part(0)};
    process second{take_part(1)};
    process third{take_part(2)};
    sleep_for(0.5);
    ::kill(first.pid, SIGSTOP);
    sleep_for(0.1);
    ::kill(first.pid, SIGCONT);
    CHECK_FALSE(first.ended_within(1));
    ::kill(second.pid, SIGSTOP);
    CHECK(second.ended_within(5) == SIGKILL);
    CHECK(first.ended_within(20) == 0);
    CHECK(third.ended_within(20) == 0);
}

TEST_CASE("watchdog: a running rank is left alone")
{
    auto const launch = launch_name();
    // As if its thread got a processor every quarter of a second only.
    process starved{[&] {
        watchdog_config slow = quick;
        slow.least = slow.stopped = {1000};  // then it counts every 0.25 s
        watchdog dog{slow, rank_id{0}};
        dog.join_host(launch, 2);
        sleep_for(2);
    }};
    process watches{[&] {
        watchdog_config strict = quick;
        strict.stopped = {0.1};
        watchdog dog{strict, rank_id{1}};
        dog.join_host(launch, 2);
        make_progress(dog, 2.5);
    }};
    CHECK(starved.ended_within(20) == 0);
    CHECK(watches.ended_within(20) == 0);
}

TEST_CASE("watchdog: finds several stopped ranks in a row")
{
    auto const launch = launch_name();
    auto const take_part = [&](int rank) {
        return [=] {
            watchdog dog{quick, rank_id{rank}};
            dog.join_host(launch, 5);
            make_progress(dog, 5);
        };
    };
    process first{take_part(0)};
    process second{take_part(1)};
    process third{take_part(2)};
    process fourth{take_part(3)};
    process fifth{take_part(4)};
    sleep_for(0.5);
    for (auto const* stopped : {&fifth, &first, &second}) {
        ::kill(stopped->pid, SIGSTOP);
    }
    CHECK(fifth.ended_within(3) == SIGKILL);
    CHECK(first.ended_within(3) == SIGKILL);
    CHECK(second.ended_within(3) == SIGKILL);
    CHECK(third.ended_within(20) == 0);
    CHECK(fourth.ended_within(20) == 0);
}

TEST_CASE("watchdog: energy of a lost rank is seen on its host")
{
    auto const launch = launch_name();
    watchdog stays{quick, rank_id{1}};
    CHECK_FALSE(stays.shown_by(rank_id{0}));
    stays.join_host(launch, 3);
    stays.shows({7.0});
    process lost{[&] {
        watchdog dog{quick, rank_id{0}};
        dog.join_host(launch, 3);
        dog.shows({12.5});
        dog.shows({42.25});
        ::kill(::getpid(), SIGKILL);
    }};
    CHECK(lost.ended_within(20) == SIGKILL);
    CHECK(stays.shown_by(rank_id{0}) == joules{42.25});
    CHECK(stays.shown_by(rank_id{1}) == joules{7.0});
    CHECK_FALSE(stays.shown_by(rank_id{2}));
    CHECK_FALSE(stays.shown_by(rank_id{3}));
}

TEST_CASE("watchdog: tolerates left ranks and suspended jobs")
{
    auto const launch = launch_name();
    process leaves{[&] {
        {
            watchdog dog{quick, rank_id{0}};
            dog.join_host(launch, 2);
            sleep_for(0.2);
        }
        sleep_for(2.5);
    }};
    process stays{[&] {
        watchdog dog{quick, rank_id{1}};
        dog.join_host(launch, 2);
        make_progress(dog, 2.5);
    }};
    sleep_for(0.6);
    ::kill(stays.pid, SIGSTOP);  // no process watches it any more; its own thread does not count the time
    sleep_for(0.8);
    ::kill(stays.pid, SIGCONT);
    CHECK(leaves.ended_within(20) == 0);
    CHECK(stays.ended_within(20) == 0);
}
