#pragma once
// SPDX-License-Identifier: Apache-2.0

// A GPU through NVML. What was locked before cannot be read from NVML, so "put back" means the driver's default.

#include <memory>
#include <string>
#include <vector>

#include "executor/power/devices/device.hpp"
#include "executor/power/devices/nvml_library.hpp"

namespace rheo::inline v0::power {

class nvml_device {
public:
    /// @param which its number, its UUID (GPU-...) or its PCI bus id (0000:01:00.0)
    static device_result<nvml_device> open(std::shared_ptr<nvml_library const> library, std::string const& which);

    std::string name() const { return name_; }
    std::string key() const { return uuid_; }
    std::string pci_address() const { return pci_address_; }  ///< domain:bus:device.function as `lspci -D` writes it; empty: not known

    device_result<std::vector<megahertz>> clocks() const;  ///< at the highest memory clock
    device_result<done> may_lock() const;                  ///< NVML asks for the capability SYS_ADMIN; a container may refuse all the same
    device_result<done> lock(megahertz clock);
    device_result<done> restore();
    restoration original() const;
    device_result<megahertz> clock_now() const;
    device_result<joules> energy() const;
    device_result<throttling> throttled() const;

private:
    std::shared_ptr<nvml_library const> library_;
    nvml::device handle_ = nullptr;
    std::string name_;
    std::string uuid_;
    std::string pci_address_;
};
static_assert(PowerDevice<nvml_device>);

/// All devices that the library sees; those that cannot be opened are left out.
std::vector<nvml_device> nvml_devices(std::shared_ptr<nvml_library const> const& library);

}  // namespace rheo::inline v0::power
