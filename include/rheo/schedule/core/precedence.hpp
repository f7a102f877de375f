#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a computation waits for, whatever order its rank runs in: the same item on the stage before (forwards) or behind
// (gradients), with the transfer between their ranks; its own forward, its own input gradient; and of a
// microbatch in slices the slice before, for gradients the one behind.

#include <cstddef>
#include <cstdint>

#include "rheo/schedule/core/cost.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0::detail {

/// The parts of a stage's work on an item; a whole backward counts as its input gradient.
enum class work_part : std::uint8_t { forward, input_gradient, weight_gradient };

constexpr work_part part_of(instruction_kind kind)
{
    return kind == instruction_kind::forward           ? work_part::forward
           : kind == instruction_kind::weight_gradient ? work_part::weight_gradient
                                                       : work_part::input_gradient;
}

/// A part of the work as one number: parts, then stages, then items.
constexpr std::size_t part_index(work_part part, std::size_t stage, std::size_t item, std::size_t stages, std::size_t items)
{
    return (static_cast<std::size_t>(part) * stages + stage) * items + item;
}

/// The transfer between neighbour stages, nothing when they share a rank.
constexpr seconds hop(program const& p, stage_costs const& costs, std::size_t from, std::size_t to)
{
    if (p.placement[from] == p.placement[to]) {
        return seconds{0.0};
    }
    return to > from ? costs[from].send_activation : costs[from].send_gradient;
}

/// Calls `need(part, stage, item, lag)` for each computation that must have ended, `lag` before this one begins.
template <class Need>
constexpr void for_each_need(program const& form, stage_costs const& costs, work_part part, std::size_t stage, std::size_t item, Need const& need)
{
    auto const chain = static_cast<std::size_t>(stages_per_copy(form));
    auto const slices = static_cast<std::size_t>(form.slices);
    if (part == work_part::forward) {
        if (stage % chain > 0) {
            need(part, stage - 1, item, hop(form, costs, stage - 1, stage));
        }
        if (item % slices > 0) {
            need(part, stage, item - 1, seconds{});
        }
        return;
    }
    need(part == work_part::weight_gradient ? work_part::input_gradient : work_part::forward, stage, item, seconds{});
    if (part == work_part::input_gradient && (stage + 1) % chain > 0) {
        need(part, stage + 1, item, hop(form, costs, stage + 1, stage));
    }
    if (part == work_part::input_gradient && (item + 1) % slices > 0) {
        need(part, stage, item + 1, seconds{});
    }
}

}  // namespace rheo::inline v0::detail
