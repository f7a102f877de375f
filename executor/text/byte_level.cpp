// SPDX-License-Identifier: Apache-2.0
#include "executor/text/byte_level.hpp"

#include "executor/text/utf8.hpp"

namespace rheo::inline v0 {

std::array<char32_t, 256> const& byte_level_characters()
{
    static auto const characters = [] {
        std::array<char32_t, 256> made{};
        char32_t next = 0x100;
        for (char32_t byte = 0; byte < 256; ++byte) {
            auto const prints = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
            made[byte] = prints ? byte : next++;
        }
        return made;
    }();
    return characters;
}

std::optional<std::string> bytes_of_byte_level(std::string_view token)
{
    static auto const bytes = [] {
        std::array<int, 0x180> made{};
        made.fill(-1);
        for (int byte = 0; byte < 256; ++byte) {
            made[byte_level_characters()[static_cast<std::size_t>(byte)]] = byte;
        }
        return made;
    }();
    std::string out;
    for (std::size_t at = 0; at < token.size();) {
        auto const here = utf8_at(token, at);
        auto const byte = here.code < bytes.size() ? bytes[here.code] : -1;
        if (byte < 0) {
            return std::nullopt;
        }
        out += static_cast<char>(static_cast<unsigned char>(byte));
        at += here.bytes;
    }
    return out;
}

std::string byte_level_of(std::string_view bytes)
{
    std::string out;
    for (char const byte : bytes) {
        append_utf8(out, byte_level_characters()[static_cast<unsigned char>(byte)]);
    }
    return out;
}

}  // namespace rheo::inline v0
