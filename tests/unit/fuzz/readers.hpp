#pragma once
// SPDX-License-Identifier: Apache-2.0

// Every reader of the program as a function of bytes. A reader may refuse with the error that is its own, and then with a sentence; anything
// else that leaves it, or any property below that does not hold, is a fault. The quick test runs them over the corpus and
// changed copies of it; libFuzzer, where there is one, runs them for as long as one likes (run.sh).

#include <cstdint>
#include <span>
#include <string_view>

namespace fuzz {

struct reader {
    std::string_view name;  ///< of its folder in the corpus, too
    void (*read)(std::span<std::uint8_t const> bytes);
};

std::span<reader const> readers();

/// A reader broke a promise; what() says which.
[[noreturn]] void broken(char const* promise);
void promise(bool kept, char const* which);

std::string_view text_of(std::span<std::uint8_t const> bytes);

}  // namespace fuzz
