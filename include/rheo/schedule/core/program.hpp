#pragma once
// SPDX-License-Identifier: Apache-2.0

// A program: for every rank of one pipeline its instructions in order, and where the stages live. A
// schedule makes the compute instructions; lowering adds transfers; the plan adds reductions. The
// checks, the drawing, the simulator and the worker all read this value.
//
// Three things make up for what schedules do besides one stage per rank: a rank may hold several stages
// (chunks); the model may be there twice, then stage s of copy c is numbered c * stages_per_copy + s and
// a microbatch runs through one copy; and a microbatch may be cut along its sequence, then the item of
// slice j of microbatch m is m * slices + j: forwards go up the slices, backwards down.

#include <cstddef>
#include <vector>

#include "rheo/schedule/core/instruction.hpp"

namespace rheo::inline v0 {

struct program {
    std::vector<int> placement;                  ///< stage -> position in the pipeline (row of `rows`)
    std::vector<std::vector<instruction>> rows;  ///< position -> its instructions in program order
    int copies = 1;                              ///< of the model: placement.size() is a multiple
    int slices = 1;                              ///< of each microbatch

    friend constexpr bool operator==(program const&, program const&) = default;
};

/// How many stages one copy of the model has.
constexpr int stages_per_copy(program const& p) { return static_cast<int>(p.placement.size()) / p.copies; }

/// The program's form without its instructions.
template <class OnlyWhenCalled = void>
constexpr program empty_like(program const& p)
{
    return {p.placement, std::vector<std::vector<instruction>>(p.rows.size()), p.copies, p.slices};
}

}  // namespace rheo::inline v0
