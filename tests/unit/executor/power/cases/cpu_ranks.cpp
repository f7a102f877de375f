// SPDX-License-Identifier: Apache-2.0
// Clocks of processors, set through the whole of it: ranks that share them, are killed or lose their permission, and guardians that are killed.
// The same that guardian.cpp and clock_setter.cpp do with GPUs.
#include "executor/power/devices/cpu_device.hpp"

#include <fstream>
#include <functional>

#include <signal.h>
#include <unistd.h>

#include "executor/power/clock_setter.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"
#include "unit/executor/power/guarded_rank.hpp"
#include "unit/executor/power/machine_folder.hpp"

using namespace rheo;
using namespace rheo::power;

namespace {

constexpr std::pair<int, int> original{800000, 3500000};  // kHz, least and most
constexpr std::pair<int, int> locked_to(int mhz) { return {mhz * 1000, mhz * 1000}; }

setter_config in(machine_folder const& host, std::string const& rank)
{
    setter_config config;
    config.claims = host.path;
    config.look = seconds{0.02};
    config.say = [&host, rank](std::string const& message) { std::ofstream(host.path / ("said" + rank), std::ios::app) << message + "\n"; };
    return config;
}

/// What a rank does: requests for a clock, says when it holds, continues on command.
void be_rank(machine_folder const& host, int mhz, std::string const& name, std::function<void(clock_setter&)> const& then, std::string const& program = "")
{
    auto config = in(host, name);
    config.guardian = program;
    clock_setter setter{any_power_device{host.open()}, config};
    setter.request({static_cast<double>(mhz)});
    if (setter.settled_within({20})) {
        host.write("ready" + name, "");
    }
    then(setter);
}

bool ready(machine_folder const& host, std::string const& name)
{
    return comes_true([&] { return std::filesystem::exists(host.path / ("ready" + name)); });
}

bool all_at(machine_folder const& host, std::pair<int, int> limits)
{
    for (int cpu = 0; cpu < 4; ++cpu) {
        if (host.limits(cpu) != limits) {
            return false;
        }
    }
    return true;
}

}  // namespace

TEST_CASE("cpu_ranks: limits are restored however a rank ends")
{
    for (int const signal : {0, SIGTERM, SIGKILL, SIGSEGV}) {
        heir const all;
        machine_folder const host;
        {
            process rank{[&] {
                be_rank(host, 1200, "", [&](clock_setter&) {
                    if (signal != 0) {
                        ::signal(signal, SIG_DFL);
                        ::kill(::getpid(), signal);
                        pause(60);
                    }
                });
            }};
            REQUIRE(ready(host, ""));
            CHECK(rank.ended_within(30) == signal);
        }
        CHECK(heir::nobody_is_left());
        CHECK(all_at(host, original));
    }
}

TEST_CASE("cpu_ranks: a killed guardian is replaced")
{
    heir const all;
    machine_folder const host;
    {
        process rank{[&] { be_rank(host, 1200, "", [](clock_setter&) { pause(60); }); }};
        REQUIRE(ready(host, ""));
        auto const first = guardians_of(rank.pid);
        REQUIRE(first.size() == 1);
        ::kill(first[0], SIGKILL);
        CHECK(comes_true([&] {
            auto const now = guardians_of(rank.pid);
            return now.size() == 1 && now != first;
        }));
        CHECK(comes_true([&] { return host.read("said").ends_with("the guardian of the clocks had ended; another one is in charge\n"); }));
        CHECK(all_at(host, locked_to(1200)));
        ::kill(rank.pid, SIGKILL);
        CHECK(rank.ended_within(10) == SIGKILL);
    }
    CHECK(heir::nobody_is_left());
    CHECK(all_at(host, original));
}

TEST_CASE("cpu_ranks: two ranks: highest request, one loss")
{
    heir const all;
    machine_folder const host;
    {
        process low{[&] { be_rank(host, 1000, "-low", [](clock_setter&) { pause(60); }); }};
        REQUIRE(ready(host, "-low"));
        process high{[&] { be_rank(host, 2000, "-high", [](clock_setter&) { pause(60); }); }};
        REQUIRE(ready(host, "-high"));
        CHECK(all_at(host, locked_to(2000)));
        ::kill(high.pid, SIGKILL);
        CHECK(high.ended_within(10) == SIGKILL);
        CHECK(comes_true([&] { return all_at(host, locked_to(1000)); }));
        ::kill(low.pid, SIGKILL);
        CHECK(low.ended_within(10) == SIGKILL);
    }
    CHECK(heir::nobody_is_left());
    CHECK(all_at(host, original));
}

TEST_CASE("cpu_ranks: unwritable files: advise once, restore later")
{
    heir const all;
    machine_folder const host;
    auto const for_all = [&](std::filesystem::perms rights) {
        for (int cpu = 0; cpu < 4; ++cpu) {
            for (auto const* file : {"/scaling_min_freq", "/scaling_max_freq"}) {
                std::filesystem::permissions(host.path / ("devices/system/cpu/cpufreq/policy" + std::to_string(cpu) + file), rights);
            }
        }
    };
    if (::geteuid() == 0) {  // root cannot lose a permission: the rank runs as user nobody
        std::filesystem::permissions(host.path, std::filesystem::perms::all);
        for_all(std::filesystem::perms::all);
    }
    auto const program = (host.path / "rheo-guardian").string();  // where user nobody can read it
    std::filesystem::copy(*guardian_program(""), program);
    {
        process rank{[&] {
            if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) {
                ::_exit(9);
            }
            be_rank(
                host, 1200, "",
                [&](clock_setter& setter) {
                    bool const held = setter.status().rung == clock_rung::direct && all_at(host, locked_to(1200));
                    host.write("go", "");
                    if (!comes_true([&] { return std::filesystem::exists(host.path / "locked"); })) {
                        ::_exit(8);
                    }
                    for (int const mhz : {1500, 1800}) {
                        setter.request({static_cast<double>(mhz)});
                        if (!setter.settled_within({20})) {
                            ::_exit(7);
                        }
                    }
                    host.write("gone", "");
                    bool const advises = setter.status().rung == clock_rung::advise_only;
                    if (!comes_true([&] { return std::filesystem::exists(host.path / "again"); })) {
                        ::_exit(6);
                    }
                    if (!held || !advises) {
                        ::_exit(held ? 5 : 4);
                    }
                },
                program);
        }};
        REQUIRE(ready(host, ""));
        REQUIRE(comes_true([&] { return std::filesystem::exists(host.path / "go"); }));
        auto const reading = std::filesystem::perms::owner_read | std::filesystem::perms::group_read | std::filesystem::perms::others_read;
        for_all(reading);
        host.write("locked", "");
        CHECK(comes_true([&] { return std::filesystem::exists(host.path / "gone"); }));
        for_all(std::filesystem::perms::all);
        host.write("again", "");
        CHECK(rank.ended_within(30) == 0);
    }
    CHECK(heir::nobody_is_left());
    CHECK(all_at(host, original));
    auto const said = host.read("said");
    CHECK(said.find("clocks are set directly") != std::string::npos);
    auto const advice = said.find("clocks are advised only");
    REQUIRE(advice != std::string::npos);
    CHECK(said.find("clocks are advised only", advice + 1) == std::string::npos);
}
