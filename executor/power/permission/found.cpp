// SPDX-License-Identifier: Apache-2.0
#include "executor/power/permission/found.hpp"

#include "executor/power/devices/cpu_device.hpp"
#include "executor/power/devices/nvml_device.hpp"

namespace rheo::inline v0::power {

namespace {

found_device described(any_power_device device, ladder_config const& config)
{
    found_device is;
    is.name = device.name();
    is.key = device.key();
    if (auto const energy = device.energy(); !energy) {
        is.energy = energy.error().message;
    }
    auto const ladder = choose_rung(std::move(device), config, probing::look);
    is.rung = ladder.rung();
    is.message = ladder.message();
    return is;
}

}  // namespace

found_devices find_devices(places const& where)
{
    found_devices all;
    if (auto const library = nvml_library::load(where.nvml)) {
        for (auto& gpu : nvml_devices(*library)) {
            ladder_config const config{.zeusd = where.zeusd, .pci_address = gpu.pci_address()};
            all.devices.push_back(described(any_power_device{std::move(gpu)}, config));
        }
    } else {
        all.missing.push_back(library.error().message);
    }
    if (auto cpu = cpu_device::open(-1, where.sysfs)) {
        all.devices.push_back(described(any_power_device{std::move(*cpu)}, {}));
    } else {
        all.missing.push_back(cpu.error().message);
    }
    return all;
}

}  // namespace rheo::inline v0::power
