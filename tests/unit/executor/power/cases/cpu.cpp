// SPDX-License-Identifier: Apache-2.0
// Processors on a tree of files as sysfs has it: two packages, two cores each, one cpufreq policy per core.
#include "executor/power/devices/cpu_device.hpp"

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "unit/executor/power/machine_folder.hpp"

using namespace rheo;
using namespace rheo::power;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("cpu: energy sums packages across wrap-around")
{
    machine_folder const host;
    auto all = host.open();
    auto second = host.open(1);
    CHECK(all.energy()->count == Approx(2.0));
    CHECK(second.energy()->count == Approx(1.0));
    host.energy(0, 262143000000.0);
    CHECK(all.energy()->count == Approx(262144.0));
    host.energy(0, 500000.0);
    host.energy(1, 3000000.0);
    CHECK(all.energy()->count == Approx(262143.32885 + 0.5 + 3.0));
    CHECK(second.energy()->count == Approx(3.0));
}

TEST_CASE("cpu: lock sets min and max of cores, restore undoes")
{
    machine_folder const host;
    auto all = host.open();
    for (int const clock : {1200, 3500, 800, 2000}) {
        REQUIRE(all.lock({static_cast<double>(clock)}));
        for (int cpu = 0; cpu < 4; ++cpu) {
            CHECK(host.limits(cpu) == std::pair{clock * 1000, clock * 1000});
        }
    }
    REQUIRE(all.restore());
    auto one = host.open(1);
    REQUIRE(one.lock({900.0}));
    CHECK(host.limits(1) == std::pair{800000, 3500000});
    CHECK(host.limits(2) == std::pair{900000, 900000});
    auto const value = restoration_of(to_text(one.original()));
    REQUIRE(value);
    CHECK(perform(*value));
    for (int cpu = 0; cpu < 4; ++cpu) {
        CHECK(host.limits(cpu) == std::pair{800000, 3500000});
    }
}

TEST_CASE("cpu: clocks from cpufreq, else 100 MHz steps")
{
    machine_folder const host;
    auto const steps = *host.open().clocks();
    REQUIRE(steps.size() == 29);
    CHECK(steps.front() == megahertz{3600.0});
    CHECK(steps.back() == megahertz{800.0});
    CHECK(*host.open().clock_now() == megahertz{2003.0});
    host.write("devices/system/cpu/cpufreq/policy0/scaling_available_frequencies", "1000000 2200000 1600000 \n");
    CHECK(*host.open().clocks() == std::vector<megahertz>{{2200.0}, {1600.0}, {1000.0}});
}

TEST_CASE("cpu: a core that cannot be set leaves none set")
{
    machine_folder const host;
    auto all = host.open();
    std::filesystem::remove(host.path / "devices/system/cpu/cpufreq/policy3/scaling_min_freq");
    auto const refused = all.lock({1200.0});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == device_error_code::not_found);
    CHECK_THAT(refused.error().message, ContainsSubstring("policy3/scaling_min_freq cannot be written"));
    CHECK(host.limits(0) == std::pair{800000, 3500000});
    CHECK(host.limits(2) == std::pair{800000, 3500000});
    CHECK(all.may_lock().error().code == device_error_code::no_permission);
}

TEST_CASE("cpu: missing parts are named; half is a device")
{
    temporary_folder const empty;
    auto const none = cpu_device::open(-1, empty.path.string());
    REQUIRE_FALSE(none);
    CHECK(none.error().message ==
          "there is no RAPL package in " + empty.path.string() + "/class/powercap, and there is no cpufreq in " + empty.path.string() + "/devices/system/cpu");
    machine_folder const host;
    std::filesystem::remove_all(host.path / "class");
    auto clocks_only = host.open();
    CHECK(clocks_only.energy().error().code == device_error_code::not_found);
    CHECK(clocks_only.may_lock());
    machine_folder const other;
    std::filesystem::remove_all(other.path / "devices");
    auto energy_only = other.open();
    CHECK(energy_only.energy()->count == Approx(2.0));
    CHECK(energy_only.lock({1000.0}).error().code == device_error_code::not_found);
    CHECK(energy_only.original().empty());
}

TEST_CASE("cpu: hot cores count as throttled")
{
    machine_folder const host;
    auto all = host.open();
    CHECK_FALSE(*all.throttled());
    host.write("devices/system/cpu/cpu2/thermal_throttle/core_throttle_count", "8\n");
    CHECK(*all.throttled() == throttling{.thermal = true});
    CHECK_FALSE(*all.throttled());
}
