#pragma once
// SPDX-License-Identifier: Apache-2.0

// A program that lives on in the executable: a vector made by the compiler cannot leave it, so its
// instructions are copied into arrays of exactly the right size.

#include <array>
#include <cstddef>
#include <vector>

#include "rheo/schedule/core/program.hpp"

namespace rheo::inline v0 {

template <std::size_t Stages, std::size_t Rows, std::size_t Instructions>
struct frozen_program {
    std::array<int, Stages> placement;
    std::array<std::size_t, Rows + 1> begins;  ///< row r is instructions begins[r] .. begins[r+1]-1
    std::array<instruction, Instructions> instructions;
    int copies = 1;
    int slices = 1;

    friend constexpr bool operator==(frozen_program const&, frozen_program const&) = default;
};

/// The frozen form of the program that `Make`, a lambda without captures, returns:
/// `constexpr auto frozen = freeze<[] { return lower(gpipe::program({.ranks = 2, .microbatches = 4})); }>();`
template <auto Make>
consteval auto freeze()
{
    constexpr auto sizes = [] {
        auto const p = Make();
        std::size_t count = 0;
        for (auto const& row : p.rows) {
            count += row.size();
        }
        return std::array{p.placement.size(), p.rows.size(), count};
    }();
    frozen_program<sizes[0], sizes[1], sizes[2]> result{};
    auto const p = Make();
    result.copies = p.copies;
    result.slices = p.slices;
    for (std::size_t s = 0; s < sizes[0]; ++s) {
        result.placement[s] = p.placement[s];
    }
    std::size_t k = 0;
    for (std::size_t r = 0; r < sizes[1]; ++r) {
        for (auto const& i : p.rows[r]) {
            result.instructions[k++] = i;
        }
        result.begins[r + 1] = k;
    }
    return result;
}

/// The program of a frozen one.
template <std::size_t Stages, std::size_t Rows, std::size_t Instructions>
constexpr program thaw(frozen_program<Stages, Rows, Instructions> const& frozen)
{
    program result{{}, {}, frozen.copies, frozen.slices};
    result.placement.assign(frozen.placement.begin(), frozen.placement.end());
    for (std::size_t r = 0; r < Rows; ++r) {
        result.rows.push_back({});
        for (auto k = frozen.begins[r]; k < frozen.begins[r + 1]; ++k) {
            result.rows.back().push_back(frozen.instructions[k]);
        }
    }
    return result;
}

}  // namespace rheo::inline v0
