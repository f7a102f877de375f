#pragma once
// SPDX-License-Identifier: Apache-2.0

// One line of the numerics fingerprint (fingerprint.hpp): what it is about and its value, for people to compare.

#include <algorithm>
#include <ranges>
#include <string>
#include <string_view>

namespace rheo::inline v0 {

struct fingerprint_line {
    std::string name;
    std::string value;

    friend bool operator==(fingerprint_line const&, fingerprint_line const&) = default;
};

/// The line of the algorithms that a backend has chosen for its products, where it does. One rank chooses for all, and a run keeps what it
/// began with: it is taken over, not compared.
inline constexpr std::string_view algorithms_line = "algorithms of products";

/// The line, called as its key, of what computes attention, where that is not a warp's tensor cores.
inline constexpr std::string_view attention_line = "run.attention";

/// The line about that; null: there is none.
template <class Lines>
auto* line_in(Lines& lines, std::string_view name)
{
    auto const found = std::ranges::find(lines, name, &fingerprint_line::name);
    return found == std::ranges::end(lines) ? nullptr : &*found;
}

}  // namespace rheo::inline v0
