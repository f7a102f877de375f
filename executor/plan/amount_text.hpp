#pragma once
// SPDX-License-Identifier: Apache-2.0

// Amounts for people, with the unit that suits them: 1.25 ms, 80.25 h, about 3 min, 1814.8 k, 15.43 GiB.

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

/// Of a time that is not known better: "42 s", "3 min", "2.5 h", "4.0 d".
inline std::string rough_time_text(double s)
{
    return s < 100.0      ? fmt::format("{:.0f} s", s)
           : s < 6000.0   ? fmt::format("{:.0f} min", s / 60.0)
           : s < 172800.0 ? fmt::format("{:.1f} h", s / 3600.0)
                          : fmt::format("{:.1f} d", s / 86400.0);
}

inline std::string count_text(double value)
{
    return value < 1e4   ? fmt::format("{:.4g}", value)
           : value < 1e7 ? fmt::format("{:.1f} k", value / 1e3)
           : value < 1e9 ? fmt::format("{:.2f} M", value / 1e6)
                         : fmt::format("{:.2f} G", value / 1e9);
}

inline std::string memory_text(double mib) { return mib < 1024.0 ? fmt::format("{:.4g} MiB", mib) : fmt::format("{:.4g} GiB", mib / 1024.0); }

}  // namespace rheo::inline v0
