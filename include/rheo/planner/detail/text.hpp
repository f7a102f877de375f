#pragma once
// SPDX-License-Identifier: Apache-2.0

// Numbers in the planner's errors, as the config writes them.

#include <cstdint>
#include <cstdio>
#include <string>

#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0::detail {

/// "0.50", in MiB.
template <class OnlyWhenCalled = void>
std::string mebibytes_text(bytes size)
{
    char text[48];
    std::snprintf(text, sizeof text, "%.2f", in_mebibytes(size));
    return text;
}

/// "plan.memory_mib = 0.5": a limit has at most five decimals, as it is kept in whole bytes.
template <class OnlyWhenCalled = void>
std::string memory_limit_text(bytes limit)
{
    char digits[48];
    std::snprintf(digits, sizeof digits, "%.5f", in_mebibytes(limit));
    std::string text{digits};
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') {
        text.pop_back();
    }
    return text;
}

/// "0.62", of hundredths.
template <class OnlyWhenCalled = void>
std::string hundredths_text(std::int64_t hundredths)
{
    auto const rest = hundredths % 100;
    return std::to_string(hundredths / 100) + (rest < 10 ? ".0" : ".") + std::to_string(rest);
}

/// "[2, 3]"
template <class OnlyWhenCalled = void>
std::string list_text(array_view<int const> numbers)
{
    std::string text;
    for (auto const n : numbers) {
        text += (text.empty() ? "" : ", ") + std::to_string(n);
    }
    return "[" + text + "]";
}

/// "1 rank", "2 ranks"
template <class OnlyWhenCalled = void>
std::string ranks_text(int count)
{
    return std::to_string(count) + (count == 1 ? " rank" : " ranks");
}

}  // namespace rheo::inline v0::detail
