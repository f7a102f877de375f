#pragma once
// SPDX-License-Identifier: Apache-2.0

// zeusd, the daemon of the Zeus project, which locks the clocks of GPUs for those who may not: its HTTP interface over
// a Unix socket, as of version 0.4 (github.com/ml-energy/zeus; "HTTP API Reference", ml.energy/zeus/zeusd/api):
// GET /discover lists the devices by PCI address, POST /gpu/set_gpu_locked_clocks and /gpu/reset_gpu_locked_clocks take
// gpu_ids, min_clock_mhz, max_clock_mhz and block as a query; 403 is a missing permission, 404 a group that is off.
// As for its own clients, ZEUSD_SOCK_PATH names the socket and ZEUSD_TOKEN the token.

#include <string>

#include "executor/power/device_result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0::power {

/// ZEUSD_SOCK_PATH, or /run/zeusd/zeusd.sock when that exists; empty: neither.
std::string zeusd_socket();

/// The daemon's number of the device with this PCI address, when it may set clocks. @return or why not
device_result<int> zeusd_device(std::string const& socket, std::string const& pci_address);

/// Locks the clock of a device of the daemon, and waits until it is.
device_result<done> zeusd_lock(std::string const& socket, int device, megahertz clock);

/// Undoes that.
device_result<done> zeusd_restore(std::string const& socket, int device);

}  // namespace rheo::inline v0::power
