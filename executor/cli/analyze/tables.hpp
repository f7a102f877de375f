#pragma once
// SPDX-License-Identifier: Apache-2.0

// Times, shares and tables as the pages of `rheo analyze` show them.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "executor/plan/text_table.hpp"
#include "rheo/units/units.hpp"

namespace rheo::cli {

/// Of a table no more rows are shown.
inline constexpr std::size_t most_rows = 8;

/// With the unit that suits it.
inline std::string time_text(seconds time)
{
    return time < seconds{1e-3} ? fmt::format("{:.4g} us", in_microseconds(time))
           : time < seconds{1.0} ? fmt::format("{:.4g} ms", in_milliseconds(time))
                                 : fmt::format("{:.4g} s", time.count);
}

inline seconds in_seconds(whole_nanoseconds time) { return {static_cast<double>(time.count) * 1e-9}; }
inline std::string time_text(whole_nanoseconds time) { return time_text(in_seconds(time)); }
inline std::string milliseconds_text(seconds time) { return fmt::format("{:.3f}", in_milliseconds(time)); }
inline std::string milliseconds_text(whole_nanoseconds time) { return milliseconds_text(in_seconds(time)); }

/// Percent, without their sign.
template <class Time>
std::string share(Time part, Time all)
{
    return all.count == 0 ? "-" : fmt::format("{:.1f}", 100.0 * (part / all));
}

/// The rows that matter most, those first; all of them in their order where they are few.
template <class Row, class Weight>
std::vector<Row> heaviest(std::vector<Row> rows, Weight weight)
{
    if (rows.size() > most_rows) {
        std::stable_sort(rows.begin(), rows.end(), [&](Row const& a, Row const& b) { return weight(a) > weight(b); });
        rows.resize(most_rows);
    }
    return rows;
}

inline constexpr std::size_t widest_line = 100;

/// Lines of at most 100 columns, broken between words; those after the first begin with the indent.
inline std::string wrapped(std::string_view text, std::size_t indent)
{
    std::string lines;
    std::size_t column = 0;
    while (!text.empty()) {
        auto const word = text.substr(0, text.find(' '));
        if (column > 0 && column + 1 + word.size() > widest_line) {
            lines += "\n" + std::string(indent, ' ');
            column = indent;
        } else if (column > 0) {
            lines += ' ';
            ++column;
        }
        lines += word;
        column += word.size();
        text.remove_prefix(std::min(word.size() + 1, text.size()));
    }
    return lines + "\n";
}

/// Nothing where it has no rows. @param all how many rows there are
inline std::string titled_table(std::string_view title, std::size_t all, std::vector<text_column> const& columns, std::vector<text_row> const& rows)
{
    auto const left_out = all > rows.size() ? fmt::format(" (the first {} of {})", rows.size(), all) : std::string{};
    return rows.empty() ? std::string{} : fmt::format("\n{}{}\n{}", title, left_out, to_text(columns, rows));
}

}  // namespace rheo::cli
