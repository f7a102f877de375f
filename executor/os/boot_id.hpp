#pragma once
// SPDX-License-Identifier: Apache-2.0

// Names this start of this host: the same for all its processes, and for those of no other host.

#include <fstream>
#include <string>

namespace rheo::inline v0 {

/// Linux's own; empty where there is none.
inline std::string boot_id()
{
    std::string id;
    std::getline(std::ifstream{"/proc/sys/kernel/random/boot_id"}, id);
    return id;
}

}  // namespace rheo::inline v0
