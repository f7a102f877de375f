// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/text_table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace rheo::inline v0 {

std::string to_text(std::vector<text_column> const& columns, std::vector<text_row> const& rows)
{
    std::vector<std::size_t> widths;
    text_row titles;
    for (auto const& column : columns) {
        widths.push_back(std::max(column.least, column.title.size()));
        titles.cells.push_back(column.title);
    }
    for (auto const& row : rows) {
        for (std::size_t c = 0; c < row.cells.size() && c < columns.size(); ++c) {
            widths[c] = std::max(widths[c], row.cells[c].size());
        }
    }
    std::string text;
    auto const add = [&](text_row const& row) {
        std::string line;
        for (std::size_t c = 0; c < row.cells.size() && c < columns.size(); ++c) {
            line += columns[c].right ? fmt::format("  {:>{}}", row.cells[c], widths[c]) : fmt::format("  {:<{}}", row.cells[c], widths[c]);
        }
        line += row.rest.empty() ? "" : "  " + row.rest;
        line.resize(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    };
    add(titles);
    for (auto const& row : rows) {
        add(row);
    }
    return text;
}

}  // namespace rheo::inline v0
