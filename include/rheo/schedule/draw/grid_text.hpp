#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whole schedules as text, as they are published: a line per rank, cells separated by commas, an empty cell for an idle slot. What
// is read is a grid, and its text is the text that was read, less the byte order mark, spaces and quotes that PyTorch's reader takes off, too.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rheo/schedule/core/grid.hpp"
#include "rheo/schedule/core/instruction.hpp"
#include "rheo/schedule/core/text.hpp"
#include "rheo/units/csv.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The instructions of a cell like `2F0` or `(0F7;7B3)OVERLAP_F_B`; none when it is not one.
template <class OnlyWhenCalled = void>
std::vector<instruction> instructions_of_cell(std::string_view cell)
{
    constexpr std::string_view together = ")OVERLAP_F_B";
    if (!cell.starts_with('(') || !cell.ends_with(together)) {
        auto const one = instruction_named(cell);
        return one ? std::vector{*one} : std::vector<instruction>{};
    }
    auto const pair = cell.substr(1, cell.size() - 1 - together.size());
    auto const middle = std::min(pair.find(';'), pair.size());
    auto const forward = instruction_named(trimmed(pair.substr(0, middle)));
    auto const backward = instruction_named(trimmed(pair.substr(std::min(middle + 1, pair.size()))));
    if (!forward || !backward || forward->kind != instruction_kind::forward || backward->kind != instruction_kind::backward) {
        return {};
    }
    return {{instruction_kind::overlap, forward->stage, forward->item}, *forward, *backward};
}

/// The cell about parameters that stands before a place of a row; nothing when it is none.
template <class OnlyWhenCalled = void>
std::optional<parameter_cell> parameters_of_cell(std::string_view cell, std::size_t row, std::size_t before)
{
    auto const stage = take_number(cell, std::numeric_limits<std::int16_t>::max());
    for (std::size_t word = 0; stage >= 0 && word < std::size(parameter_words); ++word) {
        if (parameter_words[word] == cell) {
            return parameter_cell{row, before, static_cast<std::int16_t>(stage), static_cast<std::uint8_t>(word)};
        }
    }
    return std::nullopt;
}

}  // namespace detail

/// Reads a text of one line per rank.
template <class OnlyWhenCalled = void>
result<program_grid> parse_grid(std::string_view text, std::vector<int> placement)
{
    program_grid grid{std::move(placement), {}, 1, 1, {}};
    line_reader lines{text};
    for (std::string_view line; lines.next(line);) {
        grid.rows.push_back({});
        auto& row = grid.rows.back();
        std::size_t number = 0;
        for (auto const cell : cells_of(line)) {
            ++number;
            if (auto const parameters = detail::parameters_of_cell(cell, grid.rows.size() - 1, row.size())) {
                grid.parameters.push_back(*parameters);
                continue;
            }
            auto const read = detail::instructions_of_cell(cell);
            row.insert(row.end(), read.begin(), read.end());
            if (cell.empty()) {
                row.push_back(std::nullopt);
            } else if (read.empty()) {
                return failure{"row " + std::to_string(lines.number) + ", cell " + std::to_string(number) + ": " + in_quotes(cell) +
                               " is not an instruction like 2F0"};
            }
        }
    }
    return grid;
}

/// The cells of a row as texts.
template <class OnlyWhenCalled = void>
std::vector<std::string> cells_of_row(program_grid const& grid, std::size_t row)
{
    auto const& cells = grid.rows[row];
    std::vector<std::string> texts;
    auto const add_parameters = [&](std::size_t before) {
        for (auto const& p : grid.parameters) {
            if (p.row == row && p.before == before) {
                texts.push_back(std::to_string(p.stage) + std::string{parameter_words[p.word]});
            }
        }
    };
    for (std::size_t k = 0; k < cells.size(); ++k) {
        add_parameters(k);
        auto const& cell = cells[k];
        bool const together = cell && cell->kind == instruction_kind::overlap && k + 2 < cells.size() && cells[k + 1] && cells[k + 2];
        if (together) {
            texts.push_back(detail::overlapped_text(*cells[k + 1], *cells[k + 2]));
            k += 2;
        } else {
            texts.push_back(cell ? to_string(*cell) : std::string{});
        }
    }
    add_parameters(cells.size());
    return texts;
}

/// The grid as text, idle cells and what is about parameters included: what parse_grid has read.
template <class OnlyWhenCalled = void>
std::string to_text(program_grid const& grid)
{
    std::string text;
    for (std::size_t row = 0; row < grid.rows.size(); ++row) {
        char const* separator = "";
        for (auto const& cell : cells_of_row(grid, row)) {
            text += separator + cell;
            separator = ",";
        }
        text += '\n';
    }
    return text;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template result<program_grid> parse_grid<>(std::string_view, std::vector<int>);
extern template std::string to_text<>(program_grid const&);
#endif

}  // namespace rheo::inline v0
