// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/sweep/sweep_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/plan/equal_pipelines.hpp"
#include "rheo/units/csv.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

constexpr std::array<std::string_view, 13> result_columns{"feasible", "ranks",  "pipelines",        "planned_s",          "step_s",  "tokens_s", "j_per_token",
                                                          "peak_mib", "bubble", "exposed_messages", "exposed_reductions", "goodput", "binds"};
constexpr std::string_view last_column = "reason";

/// A cell without commas and quotes, which would end it.
std::string cell_text(std::string text)
{
    text.erase(std::remove(text.begin(), text.end(), '"'), text.end());
    std::replace(text.begin(), text.end(), ',', ';');
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

}  // namespace

std::string csv_header(sweep_grid const& grid)
{
    std::string line = "sweep,";
    for (auto const& axis : grid.axes) {
        line += cell_text(axis.key) + ',';
    }
    return fmt::format("{}{},{}\n", line, fmt::join(result_columns, ","), last_column);
}

std::string csv_line(sweep_grid const& grid, std::string_view sweep, std::int64_t point, swept_step const& step)
{
    std::string line{sweep};
    auto const at = values_at(grid, point);
    for (std::size_t k = 0; k < at.size(); ++k) {
        line += ',' + cell_text(grid.axes[k].values[at[k]]);
    }
    if (!step.is_feasible()) {
        return line + fmt::format(",0{:,>12}{},{}\n", "", step.binds, cell_text(step.why_not));
    }
    using parts = rank_step_times<whole_nanoseconds>;
    return line + fmt::format(",1,{},{},{:.9g},{:.9f},{:.9g},{:.6g},{:.6g},{:.6f},{:.6f},{:.6f},{},{},\n", step.played.ranks,
                              cell_text(format_sum(step.pipelines)), step.planned.count, static_cast<double>(step.played.time.count) * 1e-9,
                              tokens_per_second(step), energy_per_token(step).count, in_mebibytes(step.played.fullest), share_of_step(step, &parts::bubble),
                              share_of_step(step, &parts::messages), share_of_step(step, &parts::reductions),
                              step.goodput ? fmt::format("{:.9f}", *step.goodput) : "", step.binds);
}

read_rows rows_from_csv(std::string_view text, std::string const& name, sweep_grid const& grid, std::string_view sweep)
{
    read_rows read;
    line_reader lines{text};
    std::string_view line;
    auto const refuse = [&](std::string const& what) {
        throw exit_error{exit_code::usage,
                         fmt::format("{}:{}: {}; expected the rows of this sweep, or no such file", name, std::max<std::size_t>(1, lines.number), what)};
    };
    if (!lines.next(line) || fmt::format("{}\n", line) != csv_header(grid)) {
        refuse("has other columns than this sweep");
    }
    auto const axes = grid.axes.size();
    read.whole = text.find('\n') + 1;
    while (text.find('\n', read.whole) != text.npos && lines.next(line)) {
        auto const point = static_cast<std::int64_t>(read.rows.size());
        auto const cells = cells_of<>(line);
        auto const number = [&](std::size_t column) {
            double value = 0.0;
            auto const cell = cells[1 + axes + column];
            if (!cell.empty() && !read_number(cell, value)) {
                refuse(fmt::format("{} is no number", result_columns[column]));
            }
            return value;
        };
        if (point >= points_of(grid) || cells.size() != 1 + axes + result_columns.size() + 1) {
            refuse("is no row of this sweep");
        }
        auto const at = values_at(grid, point);
        for (std::size_t k = 0; k < axes; ++k) {
            if (cells[0] != sweep || cells[1 + k] != trimmed(cell_text(grid.axes[k].values[at[k]]))) {
                refuse("is a row of another sweep: its config, cluster, grid or options were others");
            }
        }
        auto const has_goodput = !cells[1 + axes + 11].empty();
        read.rows.push_back({.point = point,
                             .is_feasible = number(0) == 1.0,
                             .ranks = static_cast<int>(number(1)),
                             .step_s = number(4),
                             .tokens_s = number(5),
                             .j_per_token = number(6),
                             .peak_mib = number(7),
                             .bubble = number(8),
                             .exposed_messages = number(9),
                             .exposed_reductions = number(10),
                             .goodput = has_goodput ? number(11) : -1.0,
                             .binds = std::string{cells[1 + axes + 12]}});
        read.whole = text.find('\n', read.whole) + 1;
    }
    return read;
}

}  // namespace rheo::cli
