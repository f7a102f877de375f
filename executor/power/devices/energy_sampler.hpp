#pragma once
// SPDX-License-Identifier: Apache-2.0

// Reads a device's energy from a thread of its own, because a read can take as long as a short computation, and answers for any moment
// in between (power/energy_meter.hpp).

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "executor/power/devices/device.hpp"
#include "executor/power/devices/energy_meter.hpp"

namespace rheo::inline v0::power {

class energy_sampler {
public:
    using moment = std::chrono::steady_clock::time_point;

    explicit energy_sampler(any_power_device device, seconds pause = milliseconds(10.0));
    ~energy_sampler();
    energy_sampler(energy_sampler const&) = delete;
    energy_sampler& operator=(energy_sampler const&) = delete;

    /// Since some moment in the past; never falls. Zero while the device reports nothing. @pre not in the future
    joules at(moment when);

private:
    void run();
    static seconds since_epoch(moment when) { return {std::chrono::duration<double>(when.time_since_epoch()).count()}; }

    any_power_device device_;
    std::chrono::duration<double> pause_;
    std::mutex mutex_;  // of all below
    std::condition_variable wake_;
    energy_meter meter_;
    bool ends_ = false;
    std::thread thread_;
};

}  // namespace rheo::inline v0::power
