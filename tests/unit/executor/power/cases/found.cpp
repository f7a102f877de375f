// SPDX-License-Identifier: Apache-2.0
// What a host has, for people: every device with its rung, every absence with its reason, and no clock touched.
#include "executor/power/permission/found.hpp"

#include "support/catch.hpp"
#include "unit/executor/power/standin_folder.hpp"
#include "unit/executor/power/zeusd_standin.hpp"

using namespace rheo::power;

TEST_CASE("found: lists GPUs with rungs and what is missing")
{
    standin_folder const folder;
    auto const host = find_devices({.nvml = RHEO_STANDIN_NVML, .sysfs = folder.path.string(), .zeusd = ""});
    REQUIRE(host.devices.size() == 2);
    CHECK(host.devices[1].name == "Stand-in A100");
    CHECK(host.devices[1].key == "GPU-standin-1");
    CHECK(host.devices[1].rung != clock_rung::zeusd);
    CHECK_FALSE(host.devices[1].message.empty());
    CHECK(host.devices[1].energy.empty());
    CHECK(host.missing == std::vector<std::string>{"there is no RAPL package in " + folder.path.string() + "/class/powercap, and there is no cpufreq in " +
                                                   folder.path.string() + "/devices/system/cpu"});
    auto const older = find_devices({.nvml = RHEO_STANDIN_NVML_OLDER, .sysfs = folder.path.string(), .zeusd = ""});
    REQUIRE(older.devices.size() == 2);
    CHECK(older.devices[0].energy == std::string{RHEO_STANDIN_NVML_OLDER} + " has no nvmlDeviceGetTotalEnergyConsumption");
    CHECK(folder.log().empty());
}

TEST_CASE("found: a host with processors only")
{
    temporary_folder const folder;
    folder.write("class/powercap/intel-rapl:0/name", "package-0\n");
    folder.write("class/powercap/intel-rapl:0/energy_uj", "5\n");
    auto const host = find_devices({.nvml = "libno-such-nvml.so.1", .sysfs = folder.path.string(), .zeusd = ""});
    REQUIRE(host.devices.size() == 1);
    CHECK(host.devices[0].key == "cpu");
    CHECK(host.devices[0].rung == clock_rung::advise_only);
    CHECK(host.devices[0].energy.empty());
    REQUIRE(host.missing.size() == 1);
    CHECK(host.missing[0].find("NVML cannot be loaded") == 0);
}
