#pragma once
// SPDX-License-Identifier: Apache-2.0

// A schedule that somebody wrote down: compute instructions in PyTorch's text form, a row per rank. Where
// the stages live, how many microbatches there are, and whether the model is there twice is read off the instructions; into how
// many slices a microbatch is cut must be said. What does not fit together is named by row and cell.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/schedule/complete.hpp"
#include "rheo/schedule/grid_text.hpp"
#include "rheo/schedule/program.hpp"
#include "rheo/schedule/stuck_state.hpp"
#include "rheo/schedule/transport.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// The answer of parse_schedule_text: a compute program for a whole step, or the sentence why not.
struct parsed_program {
    program what;
    int microbatches = 0;
    std::string reason;  ///< empty when all is well; begins with row and cell where one is to blame

    explicit operator bool() const { return reason.empty(); }
};

namespace detail {

/// `row 2, cell 5: `, counted as people count, of the first place of an instruction in the grid.
template <class = void>
std::string place_in(program_grid const& grid, std::size_t row, instruction what)
{
    auto const cells = cells_of_row(grid, row);
    std::size_t cell = 0;
    while (cell < cells.size()) {
        auto const there = instructions_of_cell(cells[cell++]);
        if (std::find(there.begin(), there.end(), what) != there.end()) {
            break;
        }
    }
    return "row " + std::to_string(row + 1) + ", cell " + std::to_string(cell) + ": ";
}

/// Two when item 0 runs forward through half of the stages, which one copy of the model would not let it.
inline int copies_in(program const& p)
{
    std::size_t forwards = 0;
    for (auto const& row : p.rows) {
        for (auto const& i : row) {
            forwards += i.kind == instruction_kind::forward && i.item == 0 ? 1 : 0;
        }
    }
    return 2 * forwards == p.placement.size() ? 2 : 1;
}

}  // namespace detail

/// Reads a schedule: idle cells and cells about parameters are passed over, transfers refused (lowering puts them in).
/// The program is complete and its order acyclic when there is no reason. @pre slices >= 1
template <class = void>
parsed_program parse_schedule_text(std::string_view text, int slices = 1)
{
    expects(slices >= 1, "chunks, group and slices count from one");
    auto read = parse_grid(text, {});
    if (!read) {
        return {{}, 0, read.reason};
    }
    while (!read.grid.rows.empty() && std::none_of(read.grid.rows.back().begin(), read.grid.rows.back().end(), [](auto const& c) { return c.has_value(); })) {
        read.grid.rows.pop_back();
    }
    auto& placement = read.grid.placement;
    std::int64_t items = 0;
    std::int64_t computations = 0;
    for (std::size_t row = 0; row < read.grid.rows.size(); ++row) {
        for (auto const& cell : read.grid.rows[row]) {
            if (!cell || cell->kind == instruction_kind::overlap) {
                continue;
            }
            if (!is_compute(cell->kind)) {
                return {{}, 0, detail::place_in(read.grid, row, *cell) + "a schedule only computes (F, B, I, W); transfers are put in by lowering"};
            }
            auto const stage = static_cast<std::size_t>(cell->stage);
            placement.resize(std::max(placement.size(), stage + 1), -1);
            if (placement[stage] >= 0 && placement[stage] != static_cast<int>(row)) {
                return {{}, 0, detail::place_in(read.grid, row, *cell) + "stage " + std::to_string(stage) + " already lives in row "
                        + std::to_string(placement[stage] + 1)};
            }
            placement[stage] = static_cast<int>(row);
            items = std::max(items, std::int64_t{cell->item} + 1);
            ++computations;
        }
    }
    if (placement.empty()) {
        return {{}, 0, "row 1, cell 1: a schedule needs an instruction like 0F0"};
    }
    for (std::size_t stage = 0; stage < placement.size(); ++stage) {
        if (placement[stage] < 0) {
            return {{}, 0, "stage " + std::to_string(stage) + " is nowhere, but a later one is"};
        }
    }
    // A number with a digit too many asks for more than the text can hold: said here, before anything is made in that size.
    if (auto const stages = static_cast<std::int64_t>(placement.size()); items * stages > computations) {
        return {{}, 0, std::to_string(items) + " items in " + std::to_string(stages) + " stages want at least " + std::to_string(items * stages)
                + " computations, and there are " + std::to_string(computations)};
    }
    if (items % slices != 0) {
        return {{}, 0, "the items count to " + std::to_string(items) + ", which is no whole number of microbatches of " + std::to_string(slices) + " slices"};
    }
    auto p = without_idle(read.grid);
    p.copies = detail::copies_in(p);
    p.slices = slices;
    auto const microbatches = static_cast<int>(items / slices);
    for (auto const& verdict : {complete(p, microbatches), shortest_stuck_state<shared_memory>(p)}) {
        if (!verdict) {
            auto const& c = verdict.culprits.front();
            auto const place = verdict.fault == program_fault::missing ? "row " + std::to_string(c.position + 1) + ": "
                                                                       : detail::place_in(read.grid, static_cast<std::size_t>(c.position), c.what);
            return {{}, 0, place + verdict.sentence()};
        }
    }
    return {p, microbatches, {}};
}

}  // namespace rheo::inline v0
