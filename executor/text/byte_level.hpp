#pragma once
// SPDX-License-Identifier: Apache-2.0

// GPT-2's writing of bytes as characters (Radford et al., encoder.py): a tokenizer.json of byte-level BPE writes each token so. Bytes that print
// stand for themselves, the other 68 are U+0100 and on in their order.

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace rheo::inline v0 {

/// The character of each byte.
std::array<char32_t, 256> const& byte_level_characters();

/// The bytes that a token is written for; none where it has a character that stands for no byte.
std::optional<std::string> bytes_of_byte_level(std::string_view token);

/// How bytes are written as a token.
std::string byte_level_of(std::string_view bytes);

}  // namespace rheo::inline v0
