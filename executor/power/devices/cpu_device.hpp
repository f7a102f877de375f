#pragma once
// SPDX-License-Identifier: Apache-2.0

// Processors through sysfs: energy from the RAPL packages (/sys/class/powercap, Intel and AMD), clocks from cpufreq, by
// setting least and most of every core to the same. A package's energy holds its cores; memory and the zones within
// a package are left out. What was set before is read when the device is opened, so it can be put back exactly.

#include <string>
#include <vector>

#include "executor/power/devices/device.hpp"
#include "executor/power/devices/energy_meter.hpp"

namespace rheo::inline v0::power {

class cpu_device {
public:
    /// @param package one package of the machine; -1: all of them  @param root of the files, /sys but in tests
    static answer<cpu_device> open(int package = -1, std::string const& root = "/sys");

    std::string name() const;
    std::string key() const { return key_; }
    answer<std::vector<megahertz>> clocks() const;  ///< what cpufreq lists, else steps of 100 MHz
    answer<done> may_lock() const;
    answer<done> lock(megahertz clock);
    answer<done> put_back();
    restoration original() const;
    answer<megahertz> clock_now() const;  ///< the highest of all cores
    answer<joules> energy();              ///< of all packages together
    answer<throttling> throttled();       ///< since the last time it was asked

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
    refusal no_zones_;
    refusal no_policies_;
};
static_assert(PowerDevice<cpu_device>);

}  // namespace rheo::inline v0::power
