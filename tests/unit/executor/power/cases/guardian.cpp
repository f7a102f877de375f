// SPDX-License-Identifier: Apache-2.0
// Clocks are restored whatever becomes of the rank: real processes that end in every way, guardians that are killed, two
// ranks on one device; and no process stays behind.
#include "executor/power/guardian/guardian.hpp"

#include <fstream>

#include "executor/power/clock_setter.hpp"
#include "executor/power/devices/nvml_device.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"
#include "unit/executor/power/guarded_rank.hpp"
#include "unit/executor/power/standin_folder.hpp"

using namespace rheo;
using namespace rheo::power;

namespace {

any_power_device gpu() { return any_power_device{*nvml_device::open(*nvml_library::load(RHEO_STANDIN_NVML), "0")}; }

setter_config in(standin_folder const& folder, std::string const& rank = "")
{
    setter_config config;
    config.claims = folder.path;
    config.look = seconds{0.02};
    config.say = [&folder, rank](std::string const& message) { std::ofstream(folder.path / ("said" + rank), std::ios::app) << message + "\n"; };
    return config;
}

/// What a rank does: requests for a clock, says when it holds, continues on command.
void be_rank(standin_folder const& folder, int clock, std::string const& name, std::function<void(clock_setter&)> const& then, std::string const& program = "")
{
    auto config = in(folder, name);
    config.guardian = program;
    clock_setter setter{gpu(), config};
    setter.request({static_cast<double>(clock)});
    if (setter.settled_within({20})) {
        folder.write("ready" + name, "");
    }
    then(setter);
}

bool ready(standin_folder const& folder, std::string const& name = "")
{
    return comes_true([&] { return std::filesystem::exists(folder.path / ("ready" + name)); });
}

long resets(standin_folder const& folder)
{
    auto const log = folder.log();
    return std::count(log.begin(), log.end(), "reset 0");
}

}  // namespace

TEST_CASE("guardian: clock is restored however a rank ends")
{
    struct ending {
        char const* name;
        std::function<void(clock_setter&)> how;
        int status;
    };
    for (ending const& one : {ending{"in order", [](clock_setter&) {}, 0}, ending{"exit", [](clock_setter&) { ::_exit(3); }, 3},
                              ending{"abort",
                                     [](clock_setter&) {
                                         ::signal(SIGABRT, SIG_DFL);
                                         std::abort();
                                     },
                                     SIGABRT},
                              ending{"SIGTERM",
                                     [](clock_setter&) {
                                         ::signal(SIGTERM, SIG_DFL);
                                         ::raise(SIGTERM);
                                     },
                                     SIGTERM},
                              ending{"SIGKILL", [](clock_setter&) { ::kill(::getpid(), SIGKILL); }, SIGKILL},
                              ending{"segmentation fault",
                                     [](clock_setter&) {
                                         ::signal(SIGSEGV, SIG_DFL);
                                         ::raise(SIGSEGV);
                                     },
                                     SIGSEGV}}) {
        CAPTURE(one.name);
        heir const all;
        standin_folder const folder;
        {
            process rank{[&] { be_rank(folder, folder.lowest(), "", one.how); }};
            CHECK(rank.ended_within(30) == one.status);
        }
        CHECK(heir::nobody_is_left());
        CHECK(folder.locked(0) == 0);
        CHECK(folder.log() == std::vector<std::string>{"reset 0", "set 0 " + std::to_string(folder.lowest()), "reset 0"});
    }
}

TEST_CASE("guardian: survives the end of the process group")
{
    heir const all;
    standin_folder const folder;
    {
        process rank{[&] {
            ::setpgid(0, 0);
            be_rank(folder, folder.lowest(), "", [](clock_setter&) { pause(60); });
        }};
        REQUIRE(ready(folder));
        REQUIRE(folder.locked(0) == folder.lowest());
        auto const guardians = guardians_of(rank.pid);
        REQUIRE(guardians.size() == 1);
        for (int const signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGPIPE}) {
            ::kill(guardians[0], signal);
        }
        pause(0.1);
        CHECK(guardians_of(rank.pid) == guardians);
        CHECK(folder.locked(0) == folder.lowest());
        ::kill(-rank.pid, SIGKILL);
        CHECK(rank.ended_within(10) == SIGKILL);
    }
    CHECK(heir::nobody_is_left());
    CHECK(folder.locked(0) == 0);
}

TEST_CASE("guardian: a killed guardian is replaced")
{
    heir const all;
    standin_folder const folder;
    {
        process rank{[&] { be_rank(folder, folder.lowest(), "", [](clock_setter&) { pause(60); }); }};
        REQUIRE(ready(folder));
        auto const first = guardians_of(rank.pid);
        REQUIRE(first.size() == 1);
        ::kill(first[0], SIGKILL);
        CHECK(comes_true([&] {
            auto const now = guardians_of(rank.pid);
            return now.size() == 1 && now != first;
        }));
        CHECK(comes_true([&] { return folder.read("said") == "clocks are set directly\nthe guardian of the clocks had ended; another one is in charge\n"; }));
        CHECK(folder.locked(0) == folder.lowest());
        ::kill(rank.pid, SIGKILL);
        CHECK(rank.ended_within(10) == SIGKILL);
    }
    CHECK(heir::nobody_is_left());
    CHECK(folder.locked(0) == 0);
}

TEST_CASE("guardian: no guardian: restore at once, then advise")
{
    heir const all;
    standin_folder const folder;
    auto const program = (folder.path / "rheo-guardian").string();
    std::filesystem::copy(*guardian_program(""), program);
    {
        process rank{[&] {
            be_rank(
                folder, folder.lowest(), "",
                [&](clock_setter& setter) {
                    if (!comes_true([&] { return setter.status().rung == clock_rung::advise_only; })) {
                        ::_exit(1);
                    }
                    setter.request({static_cast<double>(folder.second())});
                    ::_exit(setter.settled_within({20}) ? 0 : 2);
                },
                program);
        }};
        REQUIRE(ready(folder));
        auto const guardians = guardians_of(rank.pid);
        REQUIRE(guardians.size() == 1);
        std::filesystem::remove(program);
        ::kill(guardians[0], SIGKILL);
        CHECK(rank.ended_within(30) == 0);
    }
    CHECK(heir::nobody_is_left());
    CHECK(folder.locked(0) == 0);
    CHECK(resets(folder) == 2);
    CHECK(folder.log().back() == "reset 0");
    CHECK(folder.read("said").find("clocks are advised only: there is no guardian to restore clocks") != std::string::npos);
}

TEST_CASE("guardian: last loss on a device restores its clock")
{
    heir const all;
    standin_folder const folder;
    {
        process low{[&] { be_rank(folder, folder.lowest(), "-low", [](clock_setter&) { pause(60); }); }};
        REQUIRE(ready(folder, "-low"));
        process high{[&] { be_rank(folder, folder.second(), "-high", [](clock_setter&) { pause(60); }); }};
        REQUIRE(ready(folder, "-high"));
        CHECK(folder.locked(0) == folder.second());
        ::kill(high.pid, SIGKILL);
        CHECK(high.ended_within(10) == SIGKILL);
        CHECK(comes_true([&] { return folder.locked(0) == folder.lowest(); }));
        pause(0.1);
        CHECK(folder.locked(0) == folder.lowest());
        CHECK(resets(folder) == 1);  // the question at the start
        CHECK_FALSE(low.ended_within(0));
        ::kill(low.pid, SIGKILL);
        CHECK(low.ended_within(10) == SIGKILL);
    }
    CHECK(heir::nobody_is_left());
    CHECK(folder.locked(0) == 0);
    CHECK(resets(folder) == 2);
}

TEST_CASE("guardian: next rank knows the original clock")
{
    heir const all;
    standin_folder const folder;
    {
        process rank{[&] { be_rank(folder, folder.lowest(), "", [](clock_setter&) { pause(60); }); }};
        REQUIRE(ready(folder));
        auto const guardians = guardians_of(rank.pid);
        REQUIRE(guardians.size() == 1);
        ::kill(rank.pid, SIGSTOP);
        ::kill(guardians[0], SIGKILL);
        ::kill(rank.pid, SIGKILL);
        CHECK(rank.ended_within(10) == SIGKILL);
    }
    CHECK(heir::nobody_is_left());
    CHECK(folder.locked(0) == folder.lowest());
    {
        clock_setter const next{gpu(), in(folder)};
        CHECK(next.settled_within({20}));
    }
    CHECK(folder.locked(0) == 0);
}

TEST_CASE("guardian: started by hand it explains itself and ends")
{
    auto const program = *guardian_program("");
    for (auto const* words : {"", " x", " 0", " 1 2"}) {
        auto const status = std::system((program + words + " 2>/dev/null </dev/null").c_str());
        CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 2));
    }
    CHECK(guardian_program("/no/such/program").error().code == device_error_code::not_found);
}
