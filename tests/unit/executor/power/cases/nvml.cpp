// SPDX-License-Identifier: Apache-2.0
// NVML: the real loading code on a stand-in library.
#include "executor/power/devices/nvml_device.hpp"

#include <cmath>

#include "support/catch.hpp"
#include "unit/executor/power/standin_folder.hpp"

using namespace rheo;
using namespace rheo::power;
using Catch::Matchers::ContainsSubstring;

namespace {

std::shared_ptr<nvml_library const> standin(char const* name = RHEO_STANDIN_NVML)
{
    auto library = nvml_library::load(name);
    if (!library) {
        FAIL(library.error().message);
    }
    return *library;
}

nvml_device device(char const* which = "0", char const* name = RHEO_STANDIN_NVML)
{
    auto opened = nvml_device::open(standin(name), which);
    if (!opened) {
        FAIL(opened.error().message);
    }
    return *opened;
}

megahertz mhz(int count) { return {static_cast<double>(count)}; }

}  // namespace

TEST_CASE("nvml: no library or no NVML is an error")
{
    auto const none = nvml_library::load("libno-such-nvml.so.1");
    REQUIRE_FALSE(none);
    CHECK(none.error().code == device_error_code::not_found);
    CHECK_THAT(none.error().message, ContainsSubstring("NVML cannot be loaded: libno-such-nvml.so.1"));
    auto const other = nvml_library::load("libc.so.6");
    REQUIRE_FALSE(other);
    CHECK(other.error().message == "libc.so.6 has no nvmlInit_v2");
    standin_folder const folder;
    folder.behave("driver 0");
    auto const driverless = nvml_library::load(RHEO_STANDIN_NVML);
    REQUIRE_FALSE(driverless);
    CHECK(driverless.error().code == device_error_code::not_found);
    CHECK(driverless.error().message == "NVML refuses initialising it: Driver Not Loaded (9)");
}

TEST_CASE("nvml: finds by number, UUID and PCI bus id")
{
    standin_folder const folder;
    CHECK(*standin()->devices() == 2);
    CHECK(nvml_devices(standin()).size() == 2);
    for (auto const* which : {"1", "GPU-standin-1", "0000:02:00.0", "00000000:02:00.0"}) {
        CAPTURE(which);
        auto found = device(which);
        CHECK(found.key() == "GPU-standin-1");
        CHECK(found.name() == "Stand-in A100");
        CHECK(found.pci_address() == "0000:02:00.0");
    }
    for (auto const* which : {"2", "GPU-other", "0000:09:00.0", ""}) {
        auto const missing = nvml_device::open(standin(), which);
        REQUIRE_FALSE(missing);
        CHECK(missing.error().code == device_error_code::not_found);
        CHECK_THAT(missing.error().message, ContainsSubstring("Not Found"));
    }
}

TEST_CASE("nvml: clocks are those of the highest memory clock")
{
    standin_folder const folder;
    auto const clocks = *device().clocks();
    REQUIRE(clocks.size() == folder.table.size());
    CHECK(clocks.front() == mhz(folder.highest()));
    CHECK(std::is_sorted(clocks.rbegin(), clocks.rend()));
}

TEST_CASE("nvml: a clock is locked on one device and put back")
{
    standin_folder const folder;
    auto gpu = device("0");
    CHECK(*gpu.clock_now() == mhz(folder.highest()));
    CHECK(gpu.lock(mhz(folder.lowest())));
    CHECK(*gpu.clock_now() == mhz(folder.lowest()));
    CHECK(*device("1").clock_now() == mhz(folder.highest()));
    CHECK_FALSE(gpu.lock(mhz(1)));  // not one of its clocks
    CHECK(gpu.restore());
    CHECK(folder.locked(0) == 0);
    CHECK(folder.log() == std::vector<std::string>{"set 0 " + std::to_string(folder.lowest()), "reset 0"});
}

TEST_CASE("nvml: restoration is a value for one device")
{
    standin_folder const folder;
    auto gpu = device("1");
    auto const way = gpu.original();
    auto const read = restoration_of(to_text(way));
    REQUIRE(read);
    CHECK(*read == way);
    CHECK(device("0").lock(mhz(folder.second())));
    CHECK(gpu.lock(mhz(folder.second())));
    CHECK(perform(*read));
    CHECK(folder.locked(1) == 0);
    CHECK(folder.locked(0) == folder.second());
}

TEST_CASE("nvml: energy counter is power times time")
{
    standin_folder const folder;
    auto gpu = device();
    folder.behave("now_ms 1000");
    REQUIRE(gpu.lock(mhz(folder.highest())));
    auto const begun = gpu.energy()->count;
    folder.behave("now_ms 3000");
    CHECK(gpu.energy()->count - begun == Approx(2 * folder.table.at(folder.highest())).margin(0.002));
    REQUIRE(gpu.lock(mhz(folder.lowest())));
    auto const slow = gpu.energy()->count;
    folder.behave("now_ms 4000");
    CHECK(gpu.energy()->count - slow == Approx(folder.table.at(folder.lowest())).margin(0.002));
    folder.behave("now_ms 4099 counter_ms 100");
    CHECK(gpu.energy()->count - slow == Approx(folder.table.at(folder.lowest())).margin(0.002));
}

TEST_CASE("nvml: lost permission or device is an error")
{
    standin_folder const folder;
    auto gpu = device();
    folder.behave("permission 0");
    auto const refused = gpu.lock(mhz(folder.second()));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == device_error_code::no_permission);
    CHECK(refused.error().message == "NVML refuses " + std::to_string(folder.second()) + " MHz for GPU-standin-0: Insufficient Permissions (4)");
    CHECK(gpu.restore().error().code == device_error_code::no_permission);
    folder.behave("permission_after 1");
    CHECK(gpu.lock(mhz(folder.second())));
    CHECK(gpu.lock(mhz(folder.highest())).error().code == device_error_code::no_permission);
    CHECK(*gpu.clock_now() == mhz(folder.second()));
    folder.behave("lost 1");
    CHECK(gpu.lock(mhz(folder.second())).error().code == device_error_code::lost);
    CHECK(gpu.energy().error().code == device_error_code::lost);
    CHECK(gpu.clock_now().error().code == device_error_code::lost);
    CHECK(perform(gpu.original()).error().code == device_error_code::lost);
}

TEST_CASE("nvml: throttling causes, without idle and user locks")
{
    standin_folder const folder;
    auto const causes = [&](int bits) {
        folder.behave("reasons " + std::to_string(bits));
        return *device().throttled();
    };
    CHECK_FALSE(causes(0x1 | 0x2 | 0x100));
    CHECK(causes(0x4) == throttling{.power = true});
    CHECK(causes(0x8) == throttling{.hardware = true});
    CHECK(causes(0x10) == throttling{.group = true});
    CHECK(causes(0x20) == throttling{.thermal = true});
    CHECK(causes(0x40) == throttling{.thermal = true});
    CHECK(causes(0x80 | 0x1) == throttling{.hardware = true});
}

TEST_CASE("nvml: old drivers lack energy, rename reasons")
{
    standin_folder const folder;
    folder.behave("reasons 4");
    auto gpu = device("0", RHEO_STANDIN_NVML_OLDER);
    CHECK(gpu.energy().error().code == device_error_code::not_supported);
    CHECK_THAT(gpu.energy().error().message, ContainsSubstring("has no nvmlDeviceGetTotalEnergyConsumption"));
    CHECK(*gpu.throttled() == throttling{.power = true});
    CHECK(gpu.lock(mhz(folder.second())));
}

TEST_CASE("nvml: any_power_device gives the same answers")
{
    standin_folder const folder;
    any_power_device any{device()};
    any_power_device moved = std::move(any);
    CHECK(moved.key() == "GPU-standin-0");
    CHECK(moved.lock(mhz(folder.second())));
    CHECK(*moved.clock_now() == mhz(folder.second()));
    CHECK(moved.original() == device().original());
}
