#pragma once
// SPDX-License-Identifier: Apache-2.0

// A program as a picture in text: a line per rank, a column per time slot, `=` where an instruction goes
// on, a dot where the rank waits, `F7+B3` where two are computed at once. Transfers are not drawn, only the waits that they cause.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "rheo/schedule/check/timeline.hpp"
#include "rheo/schedule/core/cost.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/text.hpp"
#include "rheo/schedule/core/transport.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace detail {

/// `F3`; with the stage in front where a rank has several.
inline std::string label_of(instruction i, bool with_stage)
{
    return (with_stage ? std::to_string(i.stage) : "") + std::string{name_of(i.kind)} + std::to_string(i.item);
}

/// Times are not negative, so half a slot up and down to a whole number rounds.
constexpr std::size_t slots_in(seconds time, seconds slot) { return static_cast<std::size_t>(time / slot + 0.5); }

template <class OnlyWhenCalled = void>
std::vector<std::string> slots_of(timed_row const& row, std::size_t count, seconds slot, bool with_stage)
{
    auto const column = [&](seconds time) { return slots_in(time, slot); };
    std::vector<std::string> cells(count, ".");
    for (std::size_t k = 0; k < row.instructions.size(); ++k) {
        auto const& t = row.instructions[k];
        bool const joined = k > 1 && row.instructions[k - 2].instruction.kind == instruction_kind::overlap;
        for (auto c = column(t.start); is_work(t.instruction.kind) && c < column(t.end); ++c) {
            auto const label = c == column(t.start) ? label_of(t.instruction, with_stage) : "=";
            cells[c] = joined && c == column(t.start) ? cells[c] + "+" + label : label;
        }
    }
    return cells;
}

}  // namespace detail

/// The drawing of one pipeline. Times are rounded to slots. @pre the program is sound under the transport, slot > 0
template <class Transport = shared_memory>
std::string draw(program const& p, stage_costs const& costs, seconds slot = {1.0})
{
    expects(slot > seconds{0.0}, "a slot of a drawing takes time");
    auto const times = make_timeline<Transport>(array_view{&p, 1}, {{costs}, {}});
    expects(times.sound.ok, "a program that hangs cannot be drawn");
    auto const count = detail::slots_in(makespan(times), slot);
    bool const with_stage = p.placement.size() > p.rows.size();
    std::vector<std::vector<std::string>> grid;
    std::size_t width = 1;
    for (auto const& row : times.rows) {
        grid.push_back(detail::slots_of(row, count, slot, with_stage));
        for (auto const& cell : grid.back()) {
            width = std::max(width, cell.size());
        }
    }
    std::string picture;
    for (std::size_t rank = 0; rank < grid.size(); ++rank) {
        auto const number = std::to_string(rank);
        picture += std::string(std::to_string(grid.size() - 1).size() - number.size(), ' ') + number + " |";
        for (auto const& cell : grid[rank]) {
            picture += " " + cell + std::string(width - cell.size(), ' ');
        }
        picture.erase(picture.find_last_not_of(' ') + 1);
        picture += '\n';
    }
    return picture;
}

/// The drawing at unit costs.
template <class OnlyWhenCalled = void>
std::string draw(program const& p)
{
    return draw(p, unit_costs(static_cast<int>(p.placement.size())));
}

}  // namespace rheo::inline v0
