// SPDX-License-Identifier: Apache-2.0
// The setter: the worker never waits, the latest request wins, nothing is sent twice, each trouble is reported once, and the clock
// is restored at the end.
#include "executor/power/clock_setter.hpp"

#include <algorithm>
#include <chrono>

#include "executor/power/devices/emulated_device.hpp"
#include "executor/power/devices/nvml_device.hpp"
#include "support/catch.hpp"
#include "unit/executor/power/standin_folder.hpp"

using namespace rheo;
using namespace rheo::power;
using Catch::Matchers::ContainsSubstring;

namespace {

any_power_device gpu() { return any_power_device{*nvml_device::open(*nvml_library::load(RHEO_STANDIN_NVML), "0")}; }

megahertz mhz(int count) { return {static_cast<double>(count)}; }

/// What a setter says, from its thread.
struct messages {
    std::mutex mutex;
    std::vector<std::string> all;

    std::function<void(std::string const&)> take()
    {
        return [this](std::string const& one) {
            std::lock_guard const lock{mutex};
            all.push_back(one);
        };
    }
    long count(std::string const& part)
    {
        std::lock_guard const lock{mutex};
        return std::count_if(all.begin(), all.end(), [&](auto const& one) { return one.find(part) != std::string::npos; });
    }
};

setter_config in(standin_folder const& folder, messages* said = nullptr)
{
    setter_config config;
    config.claims = folder.path;
    config.look = seconds{0.02};
    if (said != nullptr) {
        config.say = said->take();
    }
    return config;
}

template <class Condition>
bool comes_true(Condition const& condition)
{
    for (int k = 0; k < 2000 && !condition(); ++k) {
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    return condition();
}

}  // namespace

TEST_CASE("clock_setter: sets, skips repeats, restores at the end")
{
    standin_folder const folder;
    messages said;
    {
        clock_setter setter{gpu(), in(folder, &said)};
        setter.request(mhz(folder.lowest()));
        REQUIRE(setter.settled_within({20}));
        CHECK(folder.locked(0) == folder.lowest());
        setter.request(mhz(folder.lowest()));
        REQUIRE(setter.settled_within({20}));
        setter.request(mhz(folder.second()));
        REQUIRE(setter.settled_within({20}));
        auto const status = setter.status();
        CHECK(status.rung == clock_rung::direct);
        CHECK(status.holds == mhz(folder.second()));
        CHECK(status.switches == 2);
        CHECK(status.failures == 0);
    }
    CHECK(folder.log() ==
          std::vector<std::string>{"reset 0", "set 0 " + std::to_string(folder.lowest()), "set 0 " + std::to_string(folder.second()), "reset 0"});
    CHECK(said.all == std::vector<std::string>{"clocks are set directly"});
    CHECK_FALSE(std::filesystem::exists(folder.path / ("rheo-clock-" + std::to_string(::geteuid()) + "-GPU-standin-0")));
}

TEST_CASE("clock_setter: latest request wins on a slow device")
{
    standin_folder const folder;
    folder.behave("switch_ms 60");
    clock_setter setter{gpu(), in(folder)};
    setter.request(mhz(folder.second()));
    REQUIRE(setter.settled_within({20}));
    auto const begun = std::chrono::steady_clock::now();
    for (int k = 0; k < 1000; ++k) {
        setter.request(mhz(k % 2 == 0 ? folder.lowest() : folder.highest()));
    }
    setter.request(mhz(folder.lowest()));
    auto const spent = std::chrono::steady_clock::now() - begun;
    REQUIRE(setter.settled_within({20}));
    CHECK(folder.locked(0) == folder.lowest());
    auto const status = setter.status();
    CHECK(status.switches <= 1 + spent / std::chrono::milliseconds{60} + 2);  // far from a thousand
    CHECK(status.longest >= seconds{0.06});
    CHECK(status.longest_wait >= status.longest);
    CHECK(status.total >= seconds{0.06} * static_cast<double>(status.switches));
}

TEST_CASE("clock_setter: lost permission: next rung, reported once")
{
    standin_folder const folder;
    folder.behave("permission_after 2");
    messages said;
    auto config = in(folder, &said);
    config.ladder.lock_command = "echo {mhz} >> " + (folder.path / "site").string();
    config.ladder.restore_command = "echo back >> " + (folder.path / "site").string();
    {
        clock_setter setter{gpu(), config};
        for (int const clock : {folder.lowest(), folder.second(), folder.highest()}) {
            setter.request(mhz(clock));
            REQUIRE(setter.settled_within({20}));
        }
        CHECK(setter.status().rung == clock_rung::site_command);
        CHECK_THAT(setter.status().message, ContainsSubstring("Insufficient Permissions"));
        CHECK(setter.status().switches == 3);
        CHECK(setter.status().failures == 0);
    }
    CHECK(folder.read("site") == std::to_string(folder.second()) + "\n" + std::to_string(folder.highest()) + "\nback\n");
    CHECK(said.count("clocks are set directly") == 1);
    CHECK(said.count("clocks are set by the site command") == 1);

    standin_folder const other;
    other.behave("permission_after 2");
    messages heard;
    {
        clock_setter setter{gpu(), in(other, &heard)};
        for (int const clock : {other.lowest(), other.second(), other.highest()}) {
            setter.request(mhz(clock));
            REQUIRE(setter.settled_within({20}));
        }
        CHECK(setter.status().rung == clock_rung::advise_only);
        other.behave("");  // it comes back for the end
    }
    CHECK(heard.count("clocks are advised only") == 1);
    CHECK(other.locked(0) == 0);
}

TEST_CASE("clock_setter: failures are reported once, clock kept")
{
    standin_folder const folder;
    messages said;
    {
        clock_setter setter{gpu(), in(folder, &said)};
        auto const request = [&](int clock) {
            setter.request(mhz(clock));
            REQUIRE(setter.settled_within({20}));
        };
        request(folder.second());
        folder.behave("lost 1");
        request(folder.lowest());
        request(folder.second());
        request(folder.lowest());
        CHECK(setter.status().failures == 3);
        CHECK(said.count("GPU is lost") == 1);
        folder.behave("");
        request(folder.second());
        CHECK(setter.status().holds == mhz(folder.second()));
        folder.behave("lost 1");
        request(folder.lowest());
        CHECK(said.count("GPU is lost") == 2);
        folder.behave("");
    }
    CHECK(folder.locked(0) == 0);
}

TEST_CASE("clock_setter: nothing is touched without permission")
{
    standin_folder const folder;
    folder.behave("permission 0");
    {
        clock_setter setter{gpu(), in(folder)};
        setter.request(mhz(folder.lowest()));
        REQUIRE(setter.settled_within({20}));
        CHECK(setter.status().rung == clock_rung::advise_only);
        CHECK_FALSE(setter.status().holds);
    }
    CHECK(folder.log() == std::vector<std::string>{"refused 0"});  // the question
    auto config = in(folder);
    config.guardian = (folder.path / "none").string();
    folder.behave("");
    {
        clock_setter setter{gpu(), config};
        setter.request(mhz(folder.lowest()));
        REQUIRE(setter.settled_within({20}));
        CHECK(setter.status().message == "clocks are advised only: there is no guardian to restore clocks: " + config.guardian + ": No such file or directory");
    }
    CHECK(folder.locked(0) == 0);
    config.guardian = folder.write("false", "#!/bin/sh\nexit 1\n");
    std::filesystem::permissions(config.guardian, std::filesystem::perms::owner_all);
    {
        clock_setter setter{gpu(), config};
        setter.request(mhz(folder.lowest()));
        REQUIRE(setter.settled_within({20}));
        CHECK(setter.status().message == "clocks are advised only: the guardian does not answer");
    }
    CHECK(folder.locked(0) == 0);
}

TEST_CASE("clock_setter: highest request of two ranks holds")
{
    standin_folder const folder;
    {
        clock_setter first{gpu(), in(folder)};
        first.request(mhz(folder.lowest()));
        REQUIRE(first.settled_within({20}));
        {
            clock_setter second{gpu(), in(folder)};
            second.request(mhz(folder.highest()));
            REQUIRE(second.settled_within({20}));
            CHECK(folder.locked(0) == folder.highest());
            first.request(mhz(folder.second()));
            REQUIRE(first.settled_within({20}));
            CHECK(folder.locked(0) == folder.highest());
            second.request(mhz(folder.lowest()));
            REQUIRE(second.settled_within({20}));
            CHECK(folder.locked(0) == folder.second());
            second.request(mhz(folder.highest()));
            REQUIRE(second.settled_within({20}));
        }
        CHECK(comes_true([&] { return folder.locked(0) == folder.second(); }));  // it looks after the others by itself
        auto const log = folder.log();
        CHECK(std::count(log.begin(), log.end(), "reset 0") == 1);
    }
    CHECK(folder.locked(0) == 0);
}

TEST_CASE("clock_setter: emulated device needs no guardian")
{
    standin_folder const folder;
    emulated_device device{{{{.stage = stage_id{0}, .kind = instruction_kind::forward, .clock = {1400.0}, .time = {0.1}, .energy = {40.0}},
                             {.stage = stage_id{0}, .kind = instruction_kind::forward, .clock = {700.0}, .time = {0.2}, .energy = {30.0}}}},
                           {}};
    auto config = in(folder);
    config.guardian = "/nowhere";
    clock_setter setter{any_power_device{device}, config};
    setter.request({700.0});
    REQUIRE(setter.settled_within({20}));
    CHECK(*device.clock_now() == megahertz{700.0});
    CHECK(setter.status().rung == clock_rung::direct);
}
