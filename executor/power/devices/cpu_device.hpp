#pragma once
// SPDX-License-Identifier: Apache-2.0

// Processors through sysfs: energy from the RAPL packages (/sys/class/powercap, Intel and AMD), clocks from cpufreq, by
// setting least and most of every core to the same. A package's energy holds its cores; memory and the zones within
// a package are left out. What was set before is read when the device is opened, so it can be restored exactly.

#include <string>
#include <vector>

#include "executor/power/devices/device.hpp"
#include "executor/power/devices/energy_meter.hpp"

namespace rheo::inline v0::power {

class cpu_device {
public:
    /// @param package one package of the machine; -1: all of them  @param root of the files, /sys but in tests
    static device_result<cpu_device> open(int package = -1, std::string const& root = "/sys");

    std::string name() const;
    std::string key() const { return key_; }
    device_result<std::vector<megahertz>> clocks() const;  ///< what cpufreq lists, else steps of 100 MHz
    device_result<done> may_lock() const;
    device_result<done> lock(megahertz clock);
    device_result<done> restore();
    restoration original() const;
    device_result<megahertz> clock_now() const;  ///< the highest of all cores
    device_result<joules> energy();              ///< of all packages together
    device_result<throttling> throttled();       ///< since the last time it was asked

private:
    struct policy {
        std::string folder;
        long least = 0;  ///< kHz, when it was opened
        long most = 0;
    };
    struct zone {
        std::string file;
        unwrapped_counter count;  ///< microjoules
    };

    std::string key_;
    std::vector<policy> policies_;
    std::vector<zone> zones_;
    std::vector<std::string> throttle_files_;
    double throttled_ = 0.0;
    device_error no_zones_;
    device_error no_policies_;
};
static_assert(PowerDevice<cpu_device>);

}  // namespace rheo::inline v0::power
