#pragma once
// SPDX-License-Identifier: Apache-2.0

// The readers of tokenizers and of JSON lines with texts.

#include <cstdint>
#include <span>

namespace fuzz {

void tokenizer_file(std::span<std::uint8_t const> bytes);
void json_texts(std::span<std::uint8_t const> bytes);

}  // namespace fuzz
