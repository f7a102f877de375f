#pragma once
// SPDX-License-Identifier: Apache-2.0

// Comma-separated text: lines, cells, numbers. Just what the readers of tables share; which columns there
// are and what is wrong with a cell is theirs to say.

#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <vector>

namespace rheo::inline v0 {

/// Takes lines from the front of a text and counts them. A carriage return at the end of a line is left out.
struct line_reader {
    std::string_view rest;
    std::size_t number = 0;  ///< of the line taken last, from 1

    constexpr bool next(std::string_view& line)
    {
        if (rest.empty()) {
            return false;
        }
        ++number;
        line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(line.size() < rest.size() ? line.size() + 1 : line.size());
        if (!line.empty() && line.back() == '\r') {
            line.remove_suffix(1);
        }
        return true;
    }
};

/// The cells of a line; an empty line has one, empty cell.
template <class = void>
constexpr std::vector<std::string_view> cells_of(std::string_view line)
{
    std::vector<std::string_view> cells;
    for (bool more = true; more;) {
        cells.push_back(line.substr(0, line.find(',')));
        more = cells.back().size() < line.size();
        line.remove_prefix(more ? cells.back().size() + 1 : line.size());
    }
    return cells;
}

/// Reads a number that is all of the cell; false, and no change, when it is not one.
template <class Number>
bool read_number(std::string_view cell, Number& value)
{
    Number read{};
    auto const [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), read);
    if (error != std::errc{} || end != cell.data() + cell.size()) {
        return false;
    }
    value = read;
    return true;
}

}  // namespace rheo::inline v0
