#pragma once
// SPDX-License-Identifier: Apache-2.0

// Memory of this process as the kernel counts it.

#include <cstdint>
#include <fstream>

#include <unistd.h>

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Resident memory of this process; 0 where /proc does not say. Cost: reads one line of /proc.
inline bytes resident_memory()
{
    std::ifstream file{"/proc/self/statm"};
    std::int64_t whole = 0;
    std::int64_t resident = 0;
    file >> whole >> resident;
    return {resident * ::sysconf(_SC_PAGESIZE)};
}

}  // namespace rheo::inline v0
