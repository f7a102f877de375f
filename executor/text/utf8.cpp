// SPDX-License-Identifier: Apache-2.0
#include "executor/text/utf8.hpp"

#include <cstring>

namespace rheo::inline v0 {

namespace {

/// How many bytes from `at` on can begin a character, up to its whole length, and whether they are one.
struct sequence {
    std::size_t bytes;
    bool whole;
};

sequence sequence_at(std::string_view text, std::size_t at)
{
    auto const first = static_cast<unsigned char>(text[at]);
    if (first < 0x80) {
        return {1, true};
    }
    std::size_t const length = first >= 0xc2 && first <= 0xdf ? 2 : first >= 0xe0 && first <= 0xef ? 3 : first >= 0xf0 && first <= 0xf4 ? 4 : 0;
    if (length == 0) {
        return {1, false};
    }
    // Limits of the second byte keep out what is overlong, surrogates, and what is beyond U+10FFFF.
    unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    for (std::size_t i = 1; i < length; ++i) {
        if (at + i >= text.size()) {
            return {i, false};
        }
        auto const next = static_cast<unsigned char>(text[at + i]);
        if (next < low || next > high) {
            return {i, false};
        }
        low = 0x80;
        high = 0xbf;
    }
    return {length, true};
}

}  // namespace

void append_utf8(std::string& text, char32_t code)
{
    auto const put = [&](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xc0 | code >> 6);
        put(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        put(0xe0 | code >> 12);
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    } else {
        put(0xf0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3f));
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    }
}

std::size_t first_invalid(std::string_view text, std::size_t from)
{
    while (from < text.size()) {
        std::uint64_t eight = 0;
        while (from + 8 <= text.size() && (std::memcpy(&eight, text.data() + from, 8), (eight & 0x8080808080808080U) == 0)) {
            from += 8;
        }
        if (from == text.size()) {
            break;
        }
        auto const found = sequence_at(text, from);
        if (!found.whole) {
            return from;
        }
        from += found.bytes;
    }
    return text.size();
}

std::int64_t replace_invalid(std::string& text)
{
    auto at = first_invalid(text);
    if (at == text.size()) {
        return 0;
    }
    std::int64_t replaced = 0;
    std::string valid;
    std::size_t copied = 0;
    while (at < text.size()) {
        valid.append(text, copied, at - copied);
        valid += "\xef\xbf\xbd";
        ++replaced;
        copied = at + sequence_at(text, at).bytes;
        at = first_invalid(text, copied);
    }
    valid.append(text, copied);
    text = std::move(valid);
    return replaced;
}

bool is_white_space(char32_t code)
{
    return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
           code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

}  // namespace rheo::inline v0
