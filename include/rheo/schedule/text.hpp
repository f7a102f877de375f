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
        for (auto const& i : row) {
            text += to_string(i) + ",";
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

/// The answer of parse_grid: a grid, or the sentence why not.
struct parsed_grid {
    program_grid grid;
    std::string reason;  ///< empty when all is well

    explicit operator bool() const { return reason.empty(); }
};

/// Reads a text of one line per rank, cells separated by commas, an empty cell for an idle slot.
inline parsed_grid parse_grid(std::string_view text, std::vector<int> placement)
{
    parsed_grid result{{std::move(placement), {}}, {}};
    while (!text.empty()) {
        auto line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        result.grid.rows.push_back({});
        for (bool more = true; more;) {
            auto const cell = line.substr(0, line.find(','));
            more = cell.size() < line.size();
            line.remove_prefix(more ? cell.size() + 1 : cell.size());
            auto const read = instruction_named(cell);
            result.grid.rows.back().push_back(read);
            if (!read && !cell.empty()) {
                result.reason = "row " + std::to_string(result.grid.rows.size()) + ", cell "
                    + std::to_string(result.grid.rows.back().size()) + ": '" + std::string{cell}
                    + "' is not an instruction like 2F0";
                return result;
            }
        }
    }
    return result;
}

}  // namespace rheo::inline v0
