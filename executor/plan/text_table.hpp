#pragma once
// SPDX-License-Identifier: Apache-2.0

// Tables for people: each column as wide as its widest cell, two spaces between columns, so that cells never run together, whatever their magnitude.

#include <cstddef>
#include <string>
#include <vector>

namespace rheo::inline v0 {

struct text_column {
    std::string title;
    bool right = false;     ///< aligned, as numbers are
    std::size_t least = 0;  ///< characters that it is wide at least
};

struct text_row {
    std::vector<std::string> cells;  ///< of the first columns, perhaps of fewer than there are
    std::string rest{};              ///< after them, as it is: a sentence does not make a column wider
};

/// A line of titles and one for each row, each indented by two spaces, none with spaces at its end.
std::string to_text(std::vector<text_column> const& columns, std::vector<text_row> const& rows);

}  // namespace rheo::inline v0
