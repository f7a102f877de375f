#pragma once
// SPDX-License-Identifier: Apache-2.0

// Words of a file in a message about it: short and printable, so that no file can flood a terminal or send it control characters.

#include <cstddef>
#include <string>
#include <string_view>

namespace rheo::inline v0 {

/// The text in quotes, bytes that are no printable ASCII as `\x1b`, cut after about `most` characters.
template <class OnlyWhenCalled = void>
std::string in_quotes(std::string_view text, std::size_t most = 40)
{
    constexpr std::string_view digits = "0123456789abcdef";
    std::string shown;
    std::size_t taken = 0;
    for (; taken < text.size() && shown.size() < most; ++taken) {
        auto const byte = static_cast<unsigned char>(text[taken]);
        if (byte >= 0x20 && byte < 0x7f) {
            shown += text[taken];
        } else {
            shown += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
        }
    }
    return "'" + shown + "'" + (taken < text.size() ? "... (" + std::to_string(text.size()) + " bytes)" : "");
}

}  // namespace rheo::inline v0
