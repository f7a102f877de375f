#pragma once
// SPDX-License-Identifier: Apache-2.0

// Text that the compiler can make and show: a sentence with numbers in it is put together while a program is compiled, and stands in
// the compiler's message as a template argument. The run-time refusal has the same words.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rheo/version.hpp"

namespace rheo::inline v0 {

/// A text inside its object. What goes beyond its room is cut.
template <std::size_t Room>
struct fixed_text {
    char letters[Room]{};
    std::size_t size = 0;

    constexpr bool empty() const { return size == 0; }
    constexpr std::string_view view() const { return {letters, size}; }

    constexpr fixed_text& operator<<(std::string_view text)
    {
        for (char const c : text) {
            if (size < Room) {
                letters[size++] = c;
            }
        }
        return *this;
    }
    constexpr fixed_text& operator<<(std::int64_t number)
    {
        char digits[20]{};
        std::size_t first = sizeof digits;
        auto left = number;
        do {
            auto const digit = left % 10;
            digits[--first] = static_cast<char>('0' + (digit < 0 ? -digit : digit));
            left /= 10;
        } while (left != 0);
        if (number < 0) {
            *this << "-";
        }
        return *this << std::string_view{digits + first, sizeof digits - first};
    }

    friend constexpr bool operator==(fixed_text const& a, fixed_text const& b) { return a.view() == b.view(); }
};

namespace detail {

/// A sentence as a template argument, which is how a compiler prints it.
template <std::size_t Length>
struct stated {
#ifdef __clang__  // which prints the first 36 letters of a longer text, and the first ten of several texts: so lines, broken between words where it can be
    static constexpr std::size_t longest = 36;
    char words[Length / longest * 2 + 1][longest + 1]{};

    constexpr explicit stated(char const* message)
    {
        std::size_t from = 0;
        for (auto& line : words) {
            auto end = Length - from < longest ? Length : from + longest;
            for (auto k = end; end < Length && k > from; --k) {
                if (message[k - 1] == ' ') {
                    end = k;
                    break;
                }
            }
            for (std::size_t k = 0; k < longest && from < Length + (k > 0); ++k) {
                line[k] = from < end ? message[from++] : ' ';
            }
        }
    }
#else
    char words[Length + 1]{};

    constexpr explicit stated(char const* message)
    {
        for (std::size_t k = 0; k < Length; ++k) {
            words[k] = message[k];
        }
    }
#endif
    static constexpr bool empty() { return Length == 0; }
};

}  // namespace detail

}  // namespace rheo::inline v0
