#pragma once
// SPDX-License-Identifier: Apache-2.0

// Measured messages as text: a header line `bytes,time_us`, then a row per size, ascending. Lines that begin with # are comments. A table with a fault
// is rejected as a whole, with file and line.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/simulate/network/fitted.hpp"
#include "rheo/units/csv.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

inline constexpr std::size_t most_measured_times = 4096;

/// Reads a table; `name` is the file's, for the error. Cost: linear.
template <class OnlyWhenCalled = void>
result<std::vector<measured_time>> parse_measured_times(std::string_view text, std::string_view name)
{
    line_reader lines{text};
    std::string_view line;
    std::vector<measured_time> rows;
    bool has_columns = false;
    auto const error = [&](std::string const& why) {
        return failure{std::string{name} + ":" + std::to_string(lines.number == 0 ? 1 : lines.number) + ": " + why};
    };
    while (lines.next(line)) {
        if (trimmed(line).empty() || trimmed(line).front() == '#') {
            continue;
        }
        auto const cells = cells_of(line);
        if (!has_columns) {
            has_columns = cells == cells_of("bytes,time_us");
            if (!has_columns) {
                return error(in_quotes(line) + " are no columns of measured messages; expected bytes,time_us");
            }
            continue;
        }
        measured_time row{};
        double us = 0.0;
        if (cells.size() != 2 || !read_number(cells[0], row.size.count) || !read_number(cells[1], us) || row.size.count < 0 || !(us > 0.0) || us > 1e15) {
            return error(in_quotes(line) + " is no measured message; expected bytes from 0 on and a time in us above 0");
        }
        row.time = microseconds(us);
        if (!rows.empty() && row.size <= rows.back().size) {
            return error(std::to_string(row.size.count) + " bytes come after " + std::to_string(rows.back().size.count) +
                         "; expected rows that ascend in bytes");
        }
        rows.push_back(row);
        if (rows.size() > most_measured_times) {
            return error("there are more than " + std::to_string(most_measured_times) + " measured messages; expected fewer, spread over the sizes");
        }
    }
    if (rows.empty()) {
        return error("a table of measured messages has at least two rows, after the columns bytes,time_us");
    }
    return rows;
}

}  // namespace rheo::inline v0
