#pragma once
// SPDX-License-Identifier: Apache-2.0

// Clocks for what is not the step that was planned: the rest of one that lost a rank, or an evaluation. Its computations are some of the plan's, in another
// order and number, and no rank waits for a frontier of its own. So each runs at the highest clock that the plan has for its stage and kind
// on this rank: a stage that the step never waits for stays calm, and what is on the longest path of the step is as quick as there.

#include <cstddef>
#include <vector>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What a rank's row of a plan with clocks says of one kind of computation on one stage.
struct kind_clock {
    instruction_kind kind;
    int stage;        ///< of one copy of the model
    megahertz clock;  ///< the highest of its clocks; 0: no clock matters

    friend constexpr bool operator==(kind_clock, kind_clock) = default;
};

/// The highest clock of each stage and kind in a row. @param clocks of its computations, in their order @pre as many @param stages of one copy of the model
template <class OnlyWhenCalled = void>
constexpr std::vector<kind_clock> highest_clocks(array_view<instruction const> row, array_view<megahertz const> clocks, int stages)
{
    std::vector<kind_clock> result;
    std::size_t next = 0;
    for (auto const& i : row) {
        if (!is_compute(i.kind)) {
            continue;
        }
        expects(next < clocks.size(), "every computation of the plan has its clock");
        auto const clock = clocks[next++];
        bool known = false;
        for (auto& one : result) {
            if (one.kind == i.kind && one.stage == i.stage % stages) {
                one.clock = one.clock < clock ? clock : one.clock;
                known = true;
            }
        }
        if (!known) {
            result.push_back({i.kind, i.stage % stages, clock});
        }
    }
    expects(next == clocks.size(), "every clock of the plan has its computation");
    return result;
}

/// Clocks for the computations of another row on the same stages; what the plan does not compute here runs at the highest clock that it has here.
/// @return one for each computation; empty when the plan has none
template <class OnlyWhenCalled = void>
constexpr std::vector<megahertz> carried_clocks(array_view<kind_clock const> planned, array_view<instruction const> row, int stages)
{
    megahertz highest{};
    for (auto const& one : planned) {
        highest = highest < one.clock ? one.clock : highest;
    }
    std::vector<megahertz> result;
    for (auto const& i : row) {
        if (planned.empty() || !is_compute(i.kind)) {
            continue;
        }
        auto clock = highest;
        for (auto const& one : planned) {
            clock = one.kind == i.kind && one.stage == i.stage % stages ? one.clock : clock;
        }
        result.push_back(clock);
    }
    return result;
}

}  // namespace rheo::inline v0
