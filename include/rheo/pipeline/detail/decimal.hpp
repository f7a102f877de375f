#pragma once
// SPDX-License-Identifier: Apache-2.0

// A number in a sentence, also at compile time: std::to_string is not constexpr before C++26.

#include <cstdint>
#include <string>

namespace rheo::inline v0::detail {

/// @pre number >= 0
template <class OnlyWhenCalled = void>
constexpr std::string decimal(std::int64_t number)
{
    std::string text;
    do {
        text.insert(text.begin(), static_cast<char>('0' + number % 10));
        number /= 10;
    } while (number > 0);
    return text;
}

}  // namespace rheo::inline v0::detail
