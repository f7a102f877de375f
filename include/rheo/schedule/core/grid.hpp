#pragma once
// SPDX-License-Identifier: Apache-2.0

// A compute order with its idle slots, as schedules are published: a row per rank, a column per slot, an
// empty cell where the rank idles. Idle cells change nothing but the turns of pair insertion, so the
// grid exists beside the program only to reproduce what others publish. So do the cells in which PyTorch says
// when the parameters of a stage are gathered, spread again and reduced: they are kept beside the cells and are no part of the program.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "rheo/schedule/core/program.hpp"

namespace rheo::inline v0 {

/// What a cell about the parameters of a stage says behind the stage's number.
inline constexpr std::string_view parameter_words[] = {"UNSHARD", "RESHARD", "REDUCE_GRAD"};

/// A cell like `2UNSHARD`.
struct parameter_cell {
    std::size_t row;
    std::size_t before;  ///< stands before this instruction of the row, or at its end
    std::int16_t stage;
    std::uint8_t word;  ///< of parameter_words

    friend constexpr bool operator==(parameter_cell const&, parameter_cell const&) = default;
};

struct program_grid {
    std::vector<int> placement;                                 ///< stage -> row
    std::vector<std::vector<std::optional<instruction>>> rows;  ///< row -> its cells
    int copies = 1;
    int slices = 1;
    std::vector<parameter_cell> parameters = {};  ///< by row, then by place

    friend constexpr bool operator==(program_grid const&, program_grid const&) = default;
};

/// The program without its idle cells.
template <class OnlyWhenCalled = void>
constexpr program without_idle(program_grid const& grid)
{
    program result{grid.placement, std::vector<std::vector<instruction>>(grid.rows.size()), grid.copies, grid.slices};
    for (std::size_t row = 0; row < grid.rows.size(); ++row) {
        for (auto const& cell : grid.rows[row]) {
            if (cell) {
                result.rows[row].push_back(*cell);
            }
        }
    }
    return result;
}

/// The program as a grid without idle cells.
template <class OnlyWhenCalled = void>
constexpr program_grid as_grid(program const& p)
{
    program_grid result{p.placement, std::vector<std::vector<std::optional<instruction>>>(p.rows.size()), p.copies, p.slices, {}};
    for (std::size_t row = 0; row < p.rows.size(); ++row) {
        result.rows[row].assign(p.rows[row].begin(), p.rows[row].end());
    }
    return result;
}

}  // namespace rheo::inline v0
