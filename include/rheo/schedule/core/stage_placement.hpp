#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where the stages of a pipeline live, as a value of its own: cuts, templates and pipelines need it long before there is a
// program, and a program has it at any number of microbatches alike.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/schedule/core/placement.hpp"
#include "rheo/schedule/core/program.hpp"

namespace rheo::inline v0 {

struct stage_placement {
    std::vector<int> positions{};  ///< stage -> its position in the pipeline; stage s of copy c is numbered c * stages per copy + s
    int copies = 1;                ///< of the model

    friend constexpr bool operator==(stage_placement const&, stage_placement const&) = default;
};

/// How many positions there are, each of which takes a rank.
constexpr int position_count(stage_placement const& where)
{
    int count = 0;
    for (auto const position : where.positions) {
        count = std::max(count, position + 1);
    }
    return count;
}

constexpr int stages_per_copy(stage_placement const& where) { return static_cast<int>(where.positions.size()) / where.copies; }

/// True when each position has one stage and there is one copy of the model.
template <class OnlyWhenCalled = void>
constexpr bool is_one_each(stage_placement const& where)
{
    return where.copies == 1 && where.positions == loop_placement(std::max(1, static_cast<int>(where.positions.size())), 1);
}

/// Where a program has its stages.
constexpr stage_placement placement_of(program const& p) { return {p.placement, p.copies}; }

}  // namespace rheo::inline v0
