#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which of the known names a mistyped one most likely meant: the one with the smallest edit distance
// (Levenshtein 1966). Refusals of names and keys end with it.

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// Insertions, deletions and substitutions that turn `a` into `b`. Cost |a| |b|.
constexpr std::size_t edit_distance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> row(b.size() + 1, 0);  // without the zero, clang with libstdc++ 12 has no constant expression
    for (std::size_t j = 0; j <= b.size(); ++j) {
        row[j] = j;
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            auto const above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

/// The known name nearest to `name`, the first of several; empty when none is known.
constexpr std::string_view nearest_name(std::string_view name, array_view<std::string_view const> known)
{
    std::string_view best;
    std::size_t least = 0;
    for (auto const candidate : known) {
        auto const distance = edit_distance(name, candidate);
        if (best.empty() || distance < least) {
            best = candidate;
            least = distance;
        }
    }
    return best;
}

}  // namespace rheo::inline v0
