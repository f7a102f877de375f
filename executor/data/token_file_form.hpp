#pragma once
// SPDX-License-Identifier: Apache-2.0

// llm.c's token files: a header of 256 int32 (magic, version, number of tokens, zeros), then the tokens. The first form has tokens of 16 bits; the one
// that came with Llama 3 has tokens of 32 bits. All numbers are little-endian.

#include <cstdint>
#include <string_view>

namespace rheo::inline v0 {

struct token_file_form {
    std::int32_t magic;
    std::int32_t version;
    int token_bytes;
    friend constexpr bool operator==(token_file_form const&, token_file_form const&) = default;
};

inline constexpr token_file_form tokens_of_16_bits{20240520, 1, 2};
inline constexpr token_file_form tokens_of_32_bits{20240801, 7, 4};
/// By its name; other files are texts.
constexpr bool is_token_file(std::string_view path) { return path.ends_with(".bin"); }

inline constexpr std::int64_t token_file_header_bytes = 1024;
inline constexpr std::int64_t most_tokens_of_a_file = INT32_MAX;  // the header has 32 bits for them

}  // namespace rheo::inline v0
