// SPDX-License-Identifier: Apache-2.0
// Energy read by a thread of its own: it never falls, follows the counter, and the device may be silent.
#include "executor/power/devices/energy_sampler.hpp"

#include <atomic>
#include <memory>

#include "support/catch.hpp"

using namespace rheo;
using namespace rheo::power;

namespace {

/// A device with a counter that the test sets; below zero it tells nothing.
struct counting_device {
    std::shared_ptr<std::atomic<double>> counter = std::make_shared<std::atomic<double>>(0.0);
    std::shared_ptr<std::atomic<int>> reads = std::make_shared<std::atomic<int>>(0);

    std::string name() const { return "counter"; }
    std::string key() const { return "counter"; }
    device_result<std::vector<megahertz>> clocks() const { return std::vector<megahertz>{}; }
    device_result<done> may_lock() const { return done{}; }
    device_result<done> lock(megahertz) const { return done{}; }
    device_result<done> restore() const { return done{}; }
    restoration original() const { return {}; }
    device_result<megahertz> clock_now() const { return megahertz{}; }
    device_result<joules> energy() const
    {
        ++*reads;
        double const value = *counter;
        return value < 0.0 ? device_result<joules>{device_error{device_error_code::not_supported, "silent"}} : device_result<joules>{joules{value}};
    }
    device_result<throttling> throttled() const { return throttling{}; }
};
static_assert(PowerDevice<counting_device>);

void await_reads(counting_device const& device, int more)
{
    for (int const wanted = *device.reads + more; *device.reads < wanted;) {
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
}

}  // namespace

TEST_CASE("energy_sampler: reports the counter after a read")
{
    counting_device device;
    *device.counter = 5.0;
    energy_sampler sampler{any_power_device{device}, milliseconds(1.0)};
    CHECK(sampler.at(std::chrono::steady_clock::now()).count == 5.0);
    double last = 5.0;
    for (double const value : {6.0, 8.0, 8.0, 20.0}) {
        *device.counter = value;
        await_reads(device, 3);
        auto const now = sampler.at(std::chrono::steady_clock::now()).count;
        CHECK(now >= value);
        CHECK(now >= last);
        last = now;
    }
}

TEST_CASE("energy_sampler: a silent device has drawn nothing known")
{
    counting_device device;
    *device.counter = -1.0;
    energy_sampler sampler{any_power_device{device}, milliseconds(1.0)};
    await_reads(device, 3);
    CHECK(sampler.at(std::chrono::steady_clock::now()).count == 0.0);
}
