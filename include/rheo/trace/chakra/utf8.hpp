#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whether bytes are UTF-8 (RFC 3629): the texts of a Protocol Buffers message must be, and other readers refuse a file with one that is not.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace rheo::inline v0 {

namespace detail {

/// Bytes of the character that begins here; 0 where none does: shortest form only, no surrogates, nothing above U+10FFFF.
constexpr std::size_t utf8_length(std::string_view text)
{
    auto const byte = [&](std::size_t i) -> unsigned { return static_cast<unsigned char>(text[i]); };
    auto const lead = byte(0);
    if (lead < 0x80U) {
        return 1;
    }
    std::size_t const length = lead < 0xc2U ? 0 : lead < 0xe0U ? 2 : lead < 0xf0U ? 3 : lead < 0xf5U ? 4 : 0;
    if (length == 0 || text.size() < length) {
        return 0;
    }
    auto const least = lead == 0xe0U ? 0xa0U : lead == 0xf0U ? 0x90U : 0x80U;
    auto const most = lead == 0xedU ? 0x9fU : lead == 0xf4U ? 0x8fU : 0xbfU;
    if (byte(1) < least || byte(1) > most) {
        return 0;
    }
    for (std::size_t i = 2; i < length; ++i) {
        if (byte(i) >> 6U != 2U) {
            return 0;
        }
    }
    return length;
}

}  // namespace detail

constexpr bool is_utf8(std::string_view text)
{
    if (!std::is_constant_evaluated()) {
        for (std::uint64_t eight = 0; text.size() >= sizeof eight; text.remove_prefix(sizeof eight)) {  // most texts are ASCII
            std::memcpy(&eight, text.data(), sizeof eight);
            if ((eight & 0x8080808080808080U) != 0) {
                break;
            }
        }
    }
    while (!text.empty()) {
        auto const length = detail::utf8_length(text);
        if (length == 0) {
            return false;
        }
        text.remove_prefix(length);
    }
    return true;
}

}  // namespace rheo::inline v0
