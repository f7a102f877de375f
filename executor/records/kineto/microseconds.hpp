#pragma once
// SPDX-License-Identifier: Apache-2.0

// A decimal number of microseconds as whole nanoseconds. A double has no room for the nanoseconds of a time since 1970, which is how some
// profilers write times; so digits are read as what they are.

#include <cstdint>
#include <optional>
#include <string_view>

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Times are below it, of either sign; sums of a few fit 64 bits.
inline constexpr whole_nanoseconds latest_event_time{std::int64_t{1} << 61};

/// The nearest whole nanosecond, halves away from zero; nothing for a time that is not below `latest_event_time`.
/// @pre the text is a number as JSON has it
constexpr std::optional<whole_nanoseconds> nanoseconds_of(std::string_view text)
{
    bool const negative = text.starts_with('-');
    text.remove_prefix(negative ? 1 : 0);
    std::int64_t value = 0;  // of as many digits as fit
    std::int64_t scale = 3;  // power of ten from there to nanoseconds
    bool in_fraction = false;
    std::size_t k = 0;
    for (; k < text.size() && text[k] != 'e' && text[k] != 'E'; ++k) {
        if (text[k] == '.') {
            in_fraction = true;
        } else if (value < latest_event_time.count / 10) {
            value = 10 * value + (text[k] - '0');
            scale -= in_fraction ? 1 : 0;
        } else {
            scale += in_fraction ? 0 : 1;  // digits beyond 18 decide nothing that counts
        }
    }
    if (k < text.size()) {
        bool const shrinks = text.substr(k + 1).starts_with('-');
        std::int64_t exponent = 0;
        for (char const c : text.substr(k + 1)) {
            exponent = c >= '0' && c <= '9' && exponent < 1'000'000 ? 10 * exponent + (c - '0') : exponent;
        }
        scale += shrinks ? -exponent : exponent;
    }
    for (; scale > 0 && value != 0; --scale) {
        if (value >= latest_event_time.count / 10) {
            return std::nullopt;
        }
        value *= 10;
    }
    bool half = false;  // or more of the last digit that stays
    for (; scale < 0 && (value != 0 || half); ++scale) {
        half = value % 10 >= 5;
        value /= 10;
    }
    value += half ? 1 : 0;
    return value < latest_event_time.count ? std::optional{whole_nanoseconds{negative ? -value : value}} : std::nullopt;
}

}  // namespace rheo::inline v0
