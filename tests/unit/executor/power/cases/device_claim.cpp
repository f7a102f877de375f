// SPDX-License-Identifier: Apache-2.0
// Ranks that share a device: the highest request of those that live holds, nothing is sent twice, the last one restores, and
// what was there before is known to anyone who comes after.
#include "executor/power/permission/device_claim.hpp"

#include <fstream>
#include <random>

#include <sys/stat.h>

#include "support/catch.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;
using namespace rheo::power;

namespace {

/// A device that counts what is done to it.
struct counted {
    double clock = 0.0;
    int sets = 0;
    int backs = 0;

    std::function<device_result<done>(megahertz)> set()
    {
        return [this](megahertz to) -> device_result<done> { return clock = to.count, ++sets, done{}; };
    }
    std::function<device_result<done>()> restore()
    {
        return [this]() -> device_result<done> { return clock = 0.0, ++backs, done{}; };
    }
};

device_claim join(temporary_folder const& folder, std::string const& key = "GPU-1")
{
    auto claim = device_claim::join(folder.path, key);
    if (!claim) {
        FAIL(claim.error().message);
    }
    return std::move(*claim);
}

restoration writing(std::string const& text) { return {{{{restoration_kind::write, "/sys/x", text}}}}; }

}  // namespace

TEST_CASE("device_claim: one rank: no repeats, one restore")
{
    temporary_folder const folder;
    counted device;
    auto claim = join(folder);
    CHECK(claim.others() == 0);
    CHECK(claim.request({1000.0}, device.set())->changed);
    CHECK_FALSE(claim.request({1000.0}, device.set())->changed);
    CHECK(claim.request({1200.0}, device.set())->holds == megahertz{1200.0});
    CHECK(device.sets == 2);
    CHECK(claim.leave(device.restore()));
    CHECK(device.backs == 1);
    CHECK(std::filesystem::is_empty(folder.path));
    auto idle = join(folder);
    CHECK(idle.leave(device.restore()));
    CHECK(device.backs == 1);  // nothing was set
}

TEST_CASE("device_claim: highest live request holds")
{
    std::mt19937 random(11);
    for (int round = 0; round < 20; ++round) {
        temporary_folder const folder;
        counted device;
        std::vector<std::optional<device_claim>> ranks(4);
        std::vector<double> requests(4, 0.0);
        for (int k = 0; k < 60; ++k) {
            auto const r = random() % 4;
            if (!ranks[r]) {
                ranks[r].emplace(join(folder));
            } else if (random() % 5 == 0) {
                int others = 0;
                for (auto const& one : ranks) {
                    others += one ? 1 : 0;
                }
                CHECK(ranks[r]->others() == others - 1);
                if (random() % 2 == 0) {
                    CHECK(ranks[r]->leave(device.restore()));
                    CHECK((others > 1 || device.clock == 0.0));
                }
                ranks[r].reset();  // else it dies without a word
                requests[r] = 0.0;
                continue;
            }
            requests[r] = 100.0 * static_cast<double>(1 + random() % 9);
            auto const result = ranks[r]->request({requests[r]}, device.set());
            CHECK(result->holds.count == *std::max_element(requests.begin(), requests.end()));
            CHECK(device.clock == result->holds.count);
        }
    }
}

TEST_CASE("device_claim: devices are separate; places are reused")
{
    temporary_folder const folder;
    counted device;
    auto first = join(folder);
    auto other = join(folder, "GPU-2");
    CHECK(first.others() == 0);
    {
        process const killed{[&] {
            auto claim = join(folder);
            (void)claim.request({1400.0}, device.set());
            folder.write("ready", "");
            std::this_thread::sleep_for(std::chrono::seconds{60});
        }};
        for (int k = 0; k < 2000 && !std::filesystem::exists(folder.path / "ready"); ++k) {
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
        }
        CHECK(first.others() == 1);
        CHECK(first.request({900.0}, device.set())->holds == megahertz{1400.0});
        CHECK(device.sets == 0);
    }
    CHECK(first.others() == 0);
    CHECK(first.request({900.0}, device.set())->holds == megahertz{900.0});
    CHECK(device.sets == 1);
}

TEST_CASE("device_claim: a failed change is retried")
{
    temporary_folder const folder;
    counted device;
    auto claim = join(folder);
    auto const fails = [](megahertz) -> device_result<done> { return device_error{device_error_code::no_permission, "no"}; };
    CHECK(claim.request({1000.0}, fails).error().message == "no");
    CHECK(claim.request({1000.0}, device.set())->changed);
    CHECK_FALSE(claim.request({1100.0}, fails));
    CHECK(claim.leave(device.restore()));
    CHECK(device.backs == 1);
}

TEST_CASE("device_claim: original clocks are those of the first rank")
{
    temporary_folder const folder;
    counted device;
    bool untouched = false;
    auto const own = [&](std::string const& text) { return [&untouched, text](bool is) { return untouched = is, writing(text); }; };
    std::optional first{join(folder)};
    CHECK(*first->begin(own("original")) == writing("original"));
    CHECK(untouched);
    (void)first->request({1000.0}, device.set());
    std::optional second{join(folder)};
    CHECK(*second->begin(own("locked")) == writing("original"));
    CHECK_FALSE(untouched);
    first.reset();
    second.reset();  // both are killed, and their guardians too
    auto third = join(folder);
    restoration const zeusd{{{{restoration_kind::zeusd, "/run/z", "1"}}}};
    auto const healed = *third.begin([&](bool is) { return untouched = is, restoration{{writing("locked").ways[0], zeusd.ways[0]}}; });
    CHECK_FALSE(untouched);
    CHECK(healed == restoration{{writing("original").ways[0], zeusd.ways[0]}});
    CHECK(third.leave(device.restore()));
    CHECK(device.backs == 1);
    auto fourth = join(folder);
    CHECK(*fourth.begin(own("fresh")) == writing("fresh"));
}

TEST_CASE("device_claim: restores once when no rank lives")
{
    temporary_folder const folder;
    counted device;
    auto const file = folder.write("limit", "locked");
    restoration const how{{{{restoration_kind::write, file, "original"}}}};
    std::optional first{join(folder)};
    std::optional second{join(folder)};
    auto const claim = first->file();
    (void)first->request({1000.0}, device.set());
    first.reset();
    CHECK_FALSE(*restore_if_last(claim, how));
    CHECK(folder.read("limit") == "locked");
    second.reset();
    CHECK(*restore_if_last(claim, how));
    CHECK(folder.read("limit") == "original\n");
    CHECK_FALSE(std::filesystem::exists(claim));
    CHECK_FALSE(*restore_if_last(claim, how));
}

TEST_CASE("device_claim: untrusted claim files are rejected")
{
    temporary_folder const folder;
    auto const path = join(folder).file();
    ::chmod(path.c_str(), 0666);
    CHECK(device_claim::join(folder.path, "GPU-1").error().code == device_error_code::no_permission);
    CHECK_FALSE(restore_if_last(path, {}));
    std::filesystem::remove(path);
    std::filesystem::create_symlink(folder.write("elsewhere", ""), path);
    CHECK_FALSE(device_claim::join(folder.path, "GPU-1"));
    CHECK(folder.read("elsewhere").empty());
    CHECK_FALSE(device_claim::join(folder.path / "none", "GPU-1"));
    std::filesystem::remove(path);
    std::ofstream(path) << std::string(3000, 'x');
    ::chmod(path.c_str(), 0600);
    CHECK(join(folder).begin([](bool) { return writing("a"); }));  // what cannot be read says nothing
}
