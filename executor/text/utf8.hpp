#pragma once
// SPDX-License-Identifier: Apache-2.0

// UTF-8, one character at a time. Text from outside is checked once, where it comes in (`replace_invalid`); everything behind that takes it for valid.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rheo::inline v0 {

struct utf8_char {
    char32_t code;
    std::size_t bytes;
};

/// The character that begins at `at`. @pre the text is valid UTF-8, and a character begins there
inline utf8_char utf8_at(std::string_view text, std::size_t at)
{
    auto const byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
    auto const first = byte(0);
    if (first < 0x80) {
        return {first, 1};
    }
    if (first < 0xe0) {
        return {(first & 0x1f) << 6 | (byte(1) & 0x3f), 2};
    }
    if (first < 0xf0) {
        return {(first & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
    }
    return {(first & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f), 4};
}

/// Whether no character begins with this byte.
inline bool is_utf8_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

/// Where the character begins whose last byte is before `at`. @pre 0 < at, the text is valid UTF-8
inline std::size_t utf8_before(std::string_view text, std::size_t at)
{
    do {
        --at;
    } while (at > 0 && is_utf8_continuation(text[at]));
    return at;
}

void append_utf8(std::string& text, char32_t code);

/// The first byte that is not part of valid UTF-8 (RFC 3629: no surrogates, nothing overlong), or the size. Cost: 10 GB/s for ASCII
std::size_t first_invalid(std::string_view text, std::size_t from = 0);

/// Puts U+FFFD in place of each maximal part that is not UTF-8, as Unicode 15 (3.9, U+FFFD substitution of maximal subparts) and Python do.
/// Returns how many were replaced.
std::int64_t replace_invalid(std::string& text);

/// Unicode's property White_Space.
bool is_white_space(char32_t code);

}  // namespace rheo::inline v0
