#pragma once
// SPDX-License-Identifier: Apache-2.0

// Instructions as text, in the form of PyTorch's pipelining package (torch/distributed/pipelining/
// schedules.py, _Action): stage, kind, microbatch, as in `2F0` and `0SEND_F1`; a program is one line
// per rank with commas between. Reductions, which that form does not know, read `1REDUCE5`.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rheo/schedule/grid.hpp"
#include "rheo/schedule/instruction.hpp"
#include "rheo/schedule/program.hpp"

namespace rheo::inline v0 {

/// The instruction as `2F0`.
inline std::string to_string(instruction i)
{
    return std::to_string(i.stage) + std::string{name_of(i.kind)} + std::to_string(i.item);
}

/// The program as text: one line per position, instructions with commas between.
inline std::string to_text(program const& p)
{
    std::string text;
    for (auto const& row : p.rows) {
        for (std::size_t k = 0; k < row.size(); ++k) {
            if (row[k].kind == instruction_kind::overlap && k + 2 < row.size()) {
                text += "(" + to_string(row[k + 1]) + ";" + to_string(row[k + 2]) + ")OVERLAP_F_B,";
                k += 2;
            } else {
                text += to_string(row[k]) + ",";
            }
        }
        if (!row.empty()) {
            text.pop_back();
        }
        text += '\n';
    }
    return text;
}

namespace detail {

/// The number at the beginning of the text, which is cut off; -1 when there is none or it exceeds `most`.
constexpr std::int64_t take_number(std::string_view& text, std::int64_t most)
{
    std::int64_t number = 0;
    std::size_t digits = 0;
    for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9' && number <= most; ++digits) {
        number = number * 10 + (text[digits] - '0');
    }
    text.remove_prefix(digits);
    return digits == 0 || number > most ? -1 : number;
}

}  // namespace detail

/// The instruction of a text like `2F0`.
constexpr std::optional<instruction> instruction_named(std::string_view text)
{
    auto const stage = detail::take_number(text, std::numeric_limits<std::int16_t>::max());
    std::size_t length = 0;
    while (length < text.size() && (text[length] < '0' || text[length] > '9')) {
        ++length;
    }
    auto const name = text.substr(0, length);
    text.remove_prefix(length);
    auto const item = detail::take_number(text, std::numeric_limits<std::int32_t>::max());
    for (int k = 0; k <= static_cast<int>(instruction_kind::await_reduction); ++k) {
        if (stage >= 0 && item >= 0 && text.empty() && name_of(static_cast<instruction_kind>(k)) == name) {
            return instruction{static_cast<instruction_kind>(k), static_cast<std::int16_t>(stage), static_cast<std::int32_t>(item)};
        }
    }
    return std::nullopt;
}

namespace detail {

/// The instructions of a cell like `2F0` or `(0F7;7B3)OVERLAP_F_B`; none when it is not one.
inline std::vector<instruction> instructions_of_cell(std::string_view cell)
{
    constexpr std::string_view together = ")OVERLAP_F_B";
    if (!cell.starts_with('(') || !cell.ends_with(together)) {
        auto const one = instruction_named(cell);
        return one ? std::vector{*one} : std::vector<instruction>{};
    }
    auto const pair = cell.substr(1, cell.size() - 1 - together.size());
    auto const middle = std::min(pair.find(';'), pair.size());
    auto const forward = instruction_named(pair.substr(0, middle));
    auto const backward = instruction_named(pair.substr(std::min(middle + 1, pair.size())));
    if (!forward || !backward || forward->kind != instruction_kind::forward || backward->kind != instruction_kind::backward) {
        return {};
    }
    return {{instruction_kind::overlap, forward->stage, forward->item}, *forward, *backward};
}

/// True for what PyTorch writes about parameters that are spread over ranks; it is no part of a program here.
inline bool is_about_parameters(std::string_view cell)
{
    auto const name = cell.substr(std::min(cell.find_first_not_of("0123456789"), cell.size()));
    return name.size() < cell.size() && (name == "UNSHARD" || name == "RESHARD" || name == "REDUCE_GRAD");
}

}  // namespace detail

/// The answer of parse_grid: a grid, or the sentence why not.
struct parsed_grid {
    program_grid grid;
    std::string reason;  ///< empty when all is well

    explicit operator bool() const { return reason.empty(); }
};

/// Reads a text of one line per rank, cells separated by commas, an empty cell for an idle slot. PyTorch's UNSHARD,
/// RESHARD and REDUCE_GRAD are passed over.
inline parsed_grid parse_grid(std::string_view text, std::vector<int> placement)
{
    parsed_grid result{{std::move(placement), {}, 1, 1}, {}};
    while (!text.empty()) {
        auto line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        result.grid.rows.push_back({});
        std::size_t number = 0;
        for (bool more = true; more;) {
            auto const cell = line.substr(0, line.find(','));
            more = cell.size() < line.size();
            line.remove_prefix(more ? cell.size() + 1 : cell.size());
            ++number;
            if (detail::is_about_parameters(cell)) {
                continue;
            }
            auto const read = detail::instructions_of_cell(cell);
            result.grid.rows.back().insert(result.grid.rows.back().end(), read.begin(), read.end());
            if (cell.empty()) {
                result.grid.rows.back().push_back(std::nullopt);
            } else if (read.empty()) {
                result.reason = "row " + std::to_string(result.grid.rows.size()) + ", cell " + std::to_string(number) + ": '" + std::string{cell}
                    + "' is not an instruction like 2F0";
                return result;
            }
        }
    }
    return result;
}

}  // namespace rheo::inline v0
