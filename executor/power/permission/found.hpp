#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which devices of this host have clocks and energy, and by whose permission their clocks would be set: for people, and
// without touching a clock.

#include <string>
#include <vector>

#include "executor/power/devices/nvml_library.hpp"
#include "executor/power/devices/zeusd.hpp"
#include "executor/power/permission/ladder.hpp"

namespace rheo::inline v0::power {

struct found_device {
    std::string name;
    std::string key;
    clock_rung rung = clock_rung::advise_only;
    std::string message;  ///< on which rung it is, and why not higher
    std::string energy;   ///< empty: it can be read; else why not
};

struct found_devices {
    std::vector<found_device> devices;
    std::vector<std::string> missing;  ///< what was looked for and is not there, a sentence each
};

struct places {
    std::string nvml = nvml_library::default_name;
    std::string sysfs = "/sys";
    std::string zeusd = zeusd_socket();
};

found_devices find_devices(places const& where = {});

}  // namespace rheo::inline v0::power
