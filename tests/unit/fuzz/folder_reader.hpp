#pragma once
// SPDX-License-Identifier: Apache-2.0

// The reader of a run folder, and the page that is made of it: the bytes as each of its files in turn.

#include <cstdint>
#include <span>

namespace fuzz {

void records(std::span<std::uint8_t const> bytes);

}  // namespace fuzz
