#pragma once
// SPDX-License-Identifier: Apache-2.0

// The rows of a sweep as CSV: values of the axes, then what the point came to. A sweep that was interrupted is continued from the rows that it wrote.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "executor/config/files/grid_file.hpp"
#include "rheo/job/swept_step.hpp"

namespace rheo::cli {

/// A row as far as tables and pictures show it.
struct sweep_row {
    std::int64_t point = 0;
    bool is_feasible = false;
    int ranks = 0;
    double step_s = 0.0;
    double tokens_s = 0.0;
    double j_per_token = 0.0;
    double peak_mib = 0.0;
    double bubble = 0.0;  ///< shares of the step
    double exposed_messages = 0.0;
    double exposed_reductions = 0.0;
    double goodput = -1.0;  ///< below 0: not asked for
    std::string binds{};
};

/// The line of titles.
std::string csv_header(sweep_grid const& grid);

/// @param sweep what the rows of one sweep have in common: a digest of all that they follow from
std::string csv_line(sweep_grid const& grid, std::string_view sweep, std::int64_t point, swept_step const& step);

struct read_rows {
    std::vector<sweep_row> rows;
    std::size_t whole = 0;  ///< bytes of the text up to the last whole line
};

/// The rows that an earlier sweep has written, from the first point on. @throws exit_error (usage): the file is that of another sweep, or none
read_rows rows_from_csv(std::string_view text, std::string const& name, sweep_grid const& grid, std::string_view sweep);

}  // namespace rheo::cli
