#pragma once
// SPDX-License-Identifier: Apache-2.0

// Comma-separated text: lines, cells, numbers. Just what the readers of tables share; which columns there
// are and what is wrong with a cell is theirs to say. What spreadsheets and people add is no part of a cell: a byte order mark,
// spaces around it, quotes.

#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <vector>

namespace rheo::inline v0 {

/// Takes lines from the front of a text and counts them. A carriage return at the end of a line is left out, and so is a byte
/// order mark before the first.
struct line_reader {
    std::string_view rest;
    std::size_t number = 0;  ///< of the line taken last, from 1

    constexpr bool next(std::string_view& line)
    {
        if (constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF"; number == 0 && rest.starts_with(byte_order_mark)) {
            rest.remove_prefix(byte_order_mark.size());
        }
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

/// The text without white space at its ends.
constexpr std::string_view trimmed(std::string_view text)
{
    constexpr std::string_view white = " \t\r\v\f";
    auto const first = text.find_first_not_of(white);
    return first == text.npos ? std::string_view{} : text.substr(first, text.find_last_not_of(white) + 1 - first);
}

/// The cells of a line, without spaces and quotes around them; an empty line has one, empty cell. A comma ends a cell, within quotes, too: no table has
/// words with commas.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::string_view> cells_of(std::string_view line)
{
    std::vector<std::string_view> cells;
    for (bool more = true; more;) {
        auto const written = line.substr(0, line.find(','));
        more = written.size() < line.size();
        line.remove_prefix(more ? written.size() + 1 : line.size());
        auto const cell = trimmed(written);
        bool const is_quoted = cell.size() >= 2 && cell.front() == '"' && cell.back() == '"';
        cells.push_back(is_quoted ? trimmed(cell.substr(1, cell.size() - 2)) : cell);
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
