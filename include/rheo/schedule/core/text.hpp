#pragma once
// SPDX-License-Identifier: Apache-2.0

// Instructions as text, in the form of PyTorch's pipelining package (torch/distributed/pipelining/
// schedules.py, _Action): stage, kind, microbatch, as in `2F0` and `0SEND_F1`; a program is one line
// per rank with commas between. What that form does not know reads `1REDUCE5`, `1EVICT5` and `1R5`. Whole texts are read by
// grid_text.hpp.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/schedule/core/program.hpp"

namespace rheo::inline v0 {

/// The instruction as `2F0`.
inline std::string to_string(instruction i) { return std::to_string(i.stage) + std::string{name_of(i.kind)} + std::to_string(i.item); }

namespace detail {

/// `(0F7;7B3)OVERLAP_F_B`
inline std::string overlapped_text(instruction forward, instruction backward) { return "(" + to_string(forward) + ";" + to_string(backward) + ")OVERLAP_F_B"; }

}  // namespace detail

/// The program as text: one line per position, instructions with commas between.
template <class OnlyWhenCalled = void>
std::string to_text(program const& p)
{
    std::string text;
    for (auto const& row : p.rows) {
        for (std::size_t k = 0; k < row.size(); ++k) {
            if (row[k].kind == instruction_kind::overlap && k + 2 < row.size()) {
                text += detail::overlapped_text(row[k + 1], row[k + 2]) + ",";
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
template <class OnlyWhenCalled = void>
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
    for (int k = 0; k <= static_cast<int>(instruction_kind::recompute); ++k) {
        if (stage >= 0 && item >= 0 && text.empty() && name_of(static_cast<instruction_kind>(k)) == name) {
            return instruction{static_cast<instruction_kind>(k), static_cast<std::int16_t>(stage), static_cast<std::int32_t>(item)};
        }
    }
    return std::nullopt;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template std::string to_text<>(program const&);
#endif

}  // namespace rheo::inline v0
