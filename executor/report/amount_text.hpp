#pragma once
// SPDX-License-Identifier: Apache-2.0

// Amounts for people, with the unit that suits them: 1.25 ms, 80.25 h, 1814.8 k, 15.43 GiB.

#include <string>

#include <fmt/format.h>

namespace rheo::inline v0 {

inline std::string time_text(double s)
{
    return s == 0.0      ? "0"
           : s < 1e-3    ? fmt::format("{:.3g} us", s * 1e6)
           : s < 1.0     ? fmt::format("{:.3g} ms", s * 1e3)
           : s < 600.0   ? fmt::format("{:.2f} s", s)
           : s < 36000.0 ? fmt::format("{:.1f} min", s / 60.0)
                         : fmt::format("{:.2f} h", s / 3600.0);
}

inline std::string count_text(double value)
{
    return value < 1e4 ? fmt::format("{:.4g}", value) : value < 1e7 ? fmt::format("{:.1f} k", value / 1e3) : fmt::format("{:.2f} M", value / 1e6);
}

inline std::string memory_text(double mib) { return mib < 1024.0 ? fmt::format("{:.4g} MiB", mib) : fmt::format("{:.4g} GiB", mib / 1024.0); }

}  // namespace rheo::inline v0
