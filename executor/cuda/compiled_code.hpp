#pragma once
// SPDX-License-Identifier: Apache-2.0

// For which devices the kernels of this build have code. Machine code of 8.0 runs on 8.0 to 8.9, that of 9.0a, which has instructions of its own, on 9.0
// alone; PTX of 8.0, which the driver compiles when it is loaded, on all from 8.0 on (CUDA C++ Programming Guide, "Compute capabilities", "Application
// compatibility").

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rheo::inline v0::cuda {

/// Of compute capability `number / 10`.`number % 10`.
struct device_code {
    int number = 0;
    bool is_ptx = false;
    bool is_alone = false;  ///< with instructions that no other capability has

    friend constexpr bool operator==(device_code const&, device_code const&) = default;
};

/// @param text as the build lists it: machine code "80" or "90a", PTX "80+"; blanks between
inline std::vector<device_code> device_codes(std::string_view text)
{
    std::vector<device_code> codes;
    for (std::size_t at = 0; at < text.size();) {
        device_code code;
        for (; at < text.size() && text[at] != ' '; ++at) {
            auto const c = text[at];
            code.number = c >= '0' && c <= '9' ? 10 * code.number + (c - '0') : code.number;
            code.is_alone = code.is_alone || c == 'a';
            code.is_ptx = code.is_ptx || c == '+';
        }
        codes.push_back(code);
        at += at < text.size() ? 1 : 0;
    }
    return codes;
}

/// @param number of the device, as in device_code
inline bool runs_on(device_code code, int number)
{
    if (code.is_alone) {
        return code.number == number;
    }
    return code.number <= number && (code.is_ptx || code.number / 10 == number / 10);
}

inline std::string to_text(std::vector<device_code> const& codes)
{
    std::vector<std::string> parts;
    for (auto const& code : codes) {
        parts.push_back(code.is_ptx ? fmt::format("PTX of compute_{} for later ones", code.number)
                                    : fmt::format("sm_{}{}", code.number, code.is_alone ? "a" : ""));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

/// Why the kernels do not run on a device; empty: they do, or it is not known for what they were compiled.
inline std::string error_of_code(std::vector<device_code> const& codes, std::string_view name, int number)
{
    if (codes.empty() || std::any_of(codes.begin(), codes.end(), [number](device_code code) { return runs_on(code, number); })) {
        return {};
    }
    return fmt::format(
        "run.device is cuda, but this rheo has no code for {}, which has compute capability {}.{}: it was built for {}. Build it with "
        "-DRHEO_CUDA_ARCHITECTURES={}, or use another device (CUDA_VISIBLE_DEVICES)",
        name, number / 10, number % 10, to_text(codes), number);
}

}  // namespace rheo::inline v0::cuda
