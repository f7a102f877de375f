#pragma once
// SPDX-License-Identifier: Apache-2.0

// What interleaved schedules share: the order in which a rank takes its microbatches through its chunks.
// Forwards go in groups: g microbatches through the first chunk, the same through the next, and so on;
// backwards the same with the chunks in reverse. The last group may be smaller.

#include <algorithm>
#include <vector>

#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/core/instruction.hpp"
#include "rheo/schedule/core/schedule.hpp"

namespace rheo::inline v0::detail {

/// A chunk of a rank, and a microbatch.
struct chunk_item {
    int chunk;
    microbatch_id microbatch;
};

/// The forwards of a rank in order, v * m of them.
template <class OnlyWhenCalled = void>
constexpr std::vector<chunk_item> grouped(int chunks, int microbatches, int group)
{
    std::vector<chunk_item> order;
    for (int begin = 0; begin < microbatches; begin += group) {
        for (int chunk = 0; chunk < chunks; ++chunk) {
            for (int m = begin; m < std::min(begin + group, microbatches); ++m) {
                order.push_back({chunk, microbatch_id{m}});
            }
        }
    }
    return order;
}

/// The chunks that a shape asks for, `otherwise` when it leaves the choice.
constexpr int chunks_of(schedule_shape shape, int otherwise = 2) { return shape.chunks == 0 ? otherwise : shape.chunks; }

/// The group that a shape asks for; left to choose: m / (m / p) when that divides m, as PyTorch does, else p.
constexpr int group_of(schedule_shape shape)
{
    if (shape.group != 0) {
        return shape.group;
    }
    auto const rounds = std::max(1, shape.microbatches / shape.ranks);
    return shape.microbatches > 0 && shape.microbatches % rounds == 0 ? shape.microbatches / rounds : shape.ranks;
}

/// The shape with the family's own choice where it leaves one.
constexpr schedule_shape with_groups(schedule_shape shape)
{
    shape.chunks = chunks_of(shape);
    shape.group = group_of(shape);
    return shape;
}

/// True when the group is one for which the order is known to be acyclic: p <= g <= m, and no last group below p.
constexpr bool is_known_group(schedule_shape shape)
{
    auto const group = group_of(shape);
    return shape.ranks <= group && group <= shape.microbatches && (shape.microbatches % group == 0 || shape.microbatches % group >= shape.ranks);
}

/// `cyclic` when the group is not known and the check of `order(shape)` finds a circle.
template <class Order>
constexpr shape_error group_error(schedule_shape shape, Order const& order)
{
    return is_known_group(shape) || dependencies_in_order(order(shape)).ok ? shape_error::none : shape_error::cyclic;
}

}  // namespace rheo::inline v0::detail
