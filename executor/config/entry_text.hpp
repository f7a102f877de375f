#pragma once
// SPDX-License-Identifier: Apache-2.0

// Entries of config lists that are texts with parts, such as "1000: 1e-4".

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace rheo::inline v0 {

inline std::string_view without_spaces(std::string_view text)
{
    while (!text.empty() && text.front() == ' ') {
        text.remove_prefix(1);
    }
    while (!text.empty() && text.back() == ' ') {
        text.remove_suffix(1);
    }
    return text;
}

/// The number that a text is, with blanks around it; none: it is something else.
template <class Number>
std::optional<Number> number_in(std::string_view text)
{
    text = without_spaces(text);
    Number value{};
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

}  // namespace rheo::inline v0
