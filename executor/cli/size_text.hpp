#pragma once
// SPDX-License-Identifier: Apache-2.0

// Bytes for people: `24 bytes`, `1.50 KiB`, `46428.81 MiB`. MiB is the largest unit, the one that the options --memory and --round are in.

#include <string>

#include <fmt/format.h>

#include "rheo/units/units.hpp"

namespace rheo::cli {

inline std::string size_text(bytes size)
{
    if (size < kibibytes(1)) {
        return fmt::format("{} bytes", size.count);
    }
    return size < mebibytes(1) ? fmt::format("{:.2f} KiB", static_cast<double>(size.count) / 1024.0) : fmt::format("{:.2f} MiB", in_mebibytes(size));
}

}  // namespace rheo::cli
