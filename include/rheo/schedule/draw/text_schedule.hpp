#pragma once
// SPDX-License-Identifier: Apache-2.0

// A schedule from a file: compute instructions in PyTorch's text form, a row per rank. Where
// the stages live, how many microbatches there are, and whether the model is there twice is read off the instructions; into how
// many slices a microbatch is cut must be given. What does not fit together is named by row and cell.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rheo/schedule/check/complete.hpp"
#include "rheo/schedule/check/stuck_state.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/transport.hpp"
#include "rheo/schedule/draw/grid_text.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// A compute program for a whole step, as it was written down.
struct parsed_program {
    rheo::program program;
    int microbatches = 0;
};

namespace detail {

/// `row 2, cell 5: `, counted as people count, of the first place of an instruction in the grid.
template <class OnlyWhenCalled = void>
std::string place_in(program_grid const& grid, std::size_t row, instruction wanted)
{
    auto const cells = cells_of_row(grid, row);
    std::size_t cell = 0;
    while (cell < cells.size()) {
        auto const there = instructions_of_cell(cells[cell++]);
        if (std::find(there.begin(), there.end(), wanted) != there.end()) {
            break;
        }
    }
    return "row " + std::to_string(row + 1) + ", cell " + std::to_string(cell) + ": ";
}

/// An item and the stages that run it forward, ascending.
struct forwards_of_item {
    std::int32_t item;
    std::vector<int> stages;
};

/// The items that run forward anywhere, ascending.
template <class OnlyWhenCalled = void>
std::vector<forwards_of_item> forwards_by_item(program const& p)
{
    std::vector<std::pair<std::int32_t, int>> all;
    for (auto const& row : p.rows) {
        for (auto const& i : row) {
            if (i.kind == instruction_kind::forward) {
                all.emplace_back(i.item, i.stage);
            }
        }
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::vector<forwards_of_item> items;
    for (auto const& [item, stage] : all) {
        if (items.empty() || items.back().item != item) {
            items.push_back({item, {}});
        }
        items.back().stages.push_back(stage);
    }
    return items;
}

/// Two when every item goes through one half of the stages, each half gets some, and no rank has the same stage of both halves: two copies of the
/// model, which the same ranks run in two directions. Else one.
template <class OnlyWhenCalled = void>
int copies_in(program const& p, std::vector<forwards_of_item> const& items)
{
    auto const half = p.placement.size() / 2;
    auto const middle = p.placement.begin() + static_cast<std::ptrdiff_t>(half);
    std::vector<int> down(p.placement.begin(), middle);
    std::vector<int> up(middle, p.placement.end());
    std::sort(down.begin(), down.end());
    std::sort(up.begin(), up.end());
    if (down != up) {
        return 1;
    }
    for (std::size_t stage = 0; stage < half; ++stage) {
        if (p.placement[stage] == p.placement[half + stage]) {
            return 1;
        }
    }
    std::size_t in_second = 0;
    for (auto const& one : items) {
        bool const second = one.stages.front() >= static_cast<int>(half);
        if (one.stages.size() != half || second != (one.stages.back() >= static_cast<int>(half))) {
            return 1;
        }
        in_second += second ? 1 : 0;
    }
    return in_second > 0 && in_second < items.size() ? 2 : 1;
}

/// The sentence about the first item that goes forward through some stages only, with the row where it is missing; empty: there is none.
/// @pre one copy of the model
template <class OnlyWhenCalled = void>
std::string fault_of_half_run(program const& p, std::vector<forwards_of_item> const& items)
{
    for (auto const& [item, stages] : items) {
        if (stages.size() == p.placement.size()) {
            continue;
        }
        int missing = 0;
        while (std::binary_search(stages.begin(), stages.end(), missing)) {
            ++missing;
        }
        auto const name = p.slices == 1 ? "microbatch " + std::to_string(item)
                                        : "slice " + std::to_string(item % p.slices) + " of microbatch " + std::to_string(item / p.slices);
        return "row " + std::to_string(p.placement[static_cast<std::size_t>(missing)] + 1) + ": " + name + " runs in stage " + std::to_string(stages.front()) +
               " but not in stage " + std::to_string(missing) + ": " +
               to_string(make_instruction(instruction_kind::forward, stage_id{missing}, microbatch_id{item})) + " is missing";
    }
    return {};
}

}  // namespace detail

/// Reads a schedule; an error begins with row and cell where one is to blame. Idle cells and cells about parameters are passed over, transfers refused (lowering puts them in).
/// The program is complete and its order acyclic when there is no reason. @pre slices >= 1
template <class OnlyWhenCalled = void>
result<parsed_program> parse_schedule_text(std::string_view text, int slices = 1)
{
    expects(slices >= 1, "chunks, group and slices count from one");
    auto read = parse_grid(text, {});
    if (!read) {
        return failure{read.error()};
    }
    auto& grid = *read;
    while (!grid.rows.empty() && std::none_of(grid.rows.back().begin(), grid.rows.back().end(), [](auto const& c) { return c.has_value(); })) {
        grid.rows.pop_back();
    }
    auto& placement = grid.placement;
    std::int64_t items = 0;
    std::int64_t computations = 0;
    for (std::size_t row = 0; row < grid.rows.size(); ++row) {
        for (auto const& cell : grid.rows[row]) {
            if (!cell || cell->kind == instruction_kind::overlap) {
                continue;
            }
            if (!is_compute(cell->kind)) {
                return failure{detail::place_in(grid, row, *cell) + "a schedule only computes (F, B, I, W); transfers are put in by lowering"};
            }
            auto const stage = static_cast<std::size_t>(cell->stage);
            placement.resize(std::max(placement.size(), stage + 1), -1);
            if (placement[stage] >= 0 && placement[stage] != static_cast<int>(row)) {
                return failure{detail::place_in(grid, row, *cell) + "stage " + std::to_string(stage) + " already lives in row " +
                               std::to_string(placement[stage] + 1)};
            }
            placement[stage] = static_cast<int>(row);
            items = std::max(items, std::int64_t{cell->item} + 1);
            ++computations;
        }
    }
    if (placement.empty()) {
        return failure{"row 1, cell 1: a schedule needs an instruction like 0F0"};
    }
    for (std::size_t stage = 0; stage < placement.size(); ++stage) {
        if (placement[stage] < 0) {
            return failure{"stage " + std::to_string(stage) + " is nowhere, but a later one is"};
        }
    }
    auto p = without_idle(grid);
    p.slices = slices;
    auto const forwards = detail::forwards_by_item(p);
    p.copies = detail::copies_in(p, forwards);
    if (auto const fault = p.copies == 1 ? detail::fault_of_half_run(p, forwards) : std::string{}; !fault.empty()) {
        return failure{fault};
    }
    // A number with a digit too many asks for more than the text can hold: refused here, before anything of that size is allocated.
    if (auto const stages = static_cast<std::int64_t>(placement.size()); items * stages > computations) {
        return failure{std::to_string(items) + " items in " + std::to_string(stages) + " stages want at least " + std::to_string(items * stages) +
                       " computations, and there are " + std::to_string(computations)};
    }
    if (items % slices != 0) {
        return failure{"the items count to " + std::to_string(items) + ", which is no whole number of microbatches of " + std::to_string(slices) + " slices"};
    }
    auto const microbatches = static_cast<int>(items / slices);
    for (auto const& verdict : {complete(p, microbatches), shortest_stuck_state<shared_memory>(p)}) {
        if (!verdict) {
            auto const& c = verdict.culprits.front();
            auto const place = verdict.fault == program_error::missing ? "row " + std::to_string(c.position + 1) + ": "
                                                                       : detail::place_in(grid, static_cast<std::size_t>(c.position), c.instruction);
            return failure{place + verdict.message()};
        }
    }
    return parsed_program{p, microbatches};
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template result<parsed_program> parse_schedule_text<>(std::string_view, int);
#endif

}  // namespace rheo::inline v0
