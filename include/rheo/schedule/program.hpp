#pragma once
// SPDX-License-Identifier: Apache-2.0

// A program: for every rank of one pipeline its instructions in order, and where the stages live. A
// schedule makes the compute instructions; lowering adds transfers; the plan adds reductions. The
// checks, the drawing, the simulator and the worker all read this value.

#include <vector>

#include "rheo/schedule/instruction.hpp"

namespace rheo::inline v0 {

struct program {
    std::vector<int> placement;                  ///< stage -> position in the pipeline (row of `rows`)
    std::vector<std::vector<instruction>> rows;  ///< position -> its instructions in program order

    friend constexpr bool operator==(program const&, program const&) = default;
};

}  // namespace rheo::inline v0
