#pragma once
// SPDX-License-Identifier: Apache-2.0

// The readers of the library, which take texts: schedules, profiles of layers and of clocks, lines of a trace, Chakra files, tables of goodput. They
// answer with a reason and throw nothing.

#include <cstdint>
#include <span>

namespace fuzz {

void schedule(std::span<std::uint8_t const> bytes);
void layer_profile(std::span<std::uint8_t const> bytes);
void clock_profile(std::span<std::uint8_t const> bytes);
void trace_lines(std::span<std::uint8_t const> bytes);
void chakra_file(std::span<std::uint8_t const> bytes);
void kineto(std::span<std::uint8_t const> bytes);
void goodput_tables(std::span<std::uint8_t const> bytes);

}  // namespace fuzz
