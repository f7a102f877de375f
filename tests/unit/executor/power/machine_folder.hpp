#pragma once
// SPDX-License-Identifier: Apache-2.0

// A tree of files as sysfs has it: two packages, two cores each, one cpufreq policy per core.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "executor/power/devices/cpu_device.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

struct machine_folder : temporary_folder {
    machine_folder()
    {
        for (int package = 0; package < 2; ++package) {
            auto const zone = "class/powercap/intel-rapl:" + std::to_string(package);
            write(zone + "/name", "package-" + std::to_string(package) + "\n");
            write(zone + "/energy_uj", "1000000\n");
            write(zone + "/max_energy_range_uj", "262143328850\n");
            write(zone + ":0/name", "dram\n");
            write(zone + ":0/energy_uj", "77\n");
        }
        write("class/powercap/intel-rapl:2/name", "psys\n");
        write("class/powercap/intel-rapl:2/energy_uj", "55\n");
        for (int cpu = 0; cpu < 4; ++cpu) {
            auto const policy = "devices/system/cpu/cpufreq/policy" + std::to_string(cpu);
            write(policy + "/scaling_min_freq", "800000\n");
            write(policy + "/scaling_max_freq", "3500000\n");
            write(policy + "/scaling_cur_freq", std::to_string(2000000 + cpu * 1000) + "\n");
            write(policy + "/cpuinfo_min_freq", "800000\n");
            write(policy + "/cpuinfo_max_freq", "3600000\n");
            auto const folder = "devices/system/cpu/cpu" + std::to_string(cpu);
            write(folder + "/topology/physical_package_id", std::to_string(cpu / 2) + "\n");
            write(folder + "/thermal_throttle/core_throttle_count", "7\n");
            std::filesystem::create_directory_symlink(path / policy, path / folder / "cpufreq");
        }
    }

    rheo::power::cpu_device open(int package = -1) const
    {
        auto device = rheo::power::cpu_device::open(package, path.string());
        if (!device) {
            FAIL(device.error().message);
        }
        return *device;
    }

    /// Least and most of a core, in kHz.
    std::pair<int, int> limits(int cpu) const
    {
        auto const policy = "devices/system/cpu/cpufreq/policy" + std::to_string(cpu);
        return {std::atoi(read(policy + "/scaling_min_freq").c_str()), std::atoi(read(policy + "/scaling_max_freq").c_str())};
    }
    void energy(int package, double microjoules) const
    {
        write("class/powercap/intel-rapl:" + std::to_string(package) + "/energy_uj", std::to_string(static_cast<long>(microjoules)) + "\n");
    }
};
