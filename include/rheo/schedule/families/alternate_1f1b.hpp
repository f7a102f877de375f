#pragma once
// SPDX-License-Identifier: Apache-2.0

// What all schedules of the 1F1B kind share: a rank runs some forwards ahead, then a forward and a backward in turn until the
// forwards are used up, then the backwards that are left; where the backward is split, weight gradients follow some input
// gradients behind. They differ in how far ahead and behind a rank is, and in the order in which it takes its microbatches.

#include <algorithm>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/schedule/core/placement.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/row_builder.hpp"
#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/families/interleaved_order.hpp"

namespace rheo::inline v0::detail {

/// How many items a rank is ahead with its forwards, and behind with its weight gradients, of its input gradients (or whole backwards).
struct warmup {
    int forwards;
    int deferred_weights = 0;
    bool split = false;
};

/// What a rank does with one item.
struct stage_item {
    stage_id stage;
    microbatch_id item;
};

/// Appends `count` forwards and backwards; `forward(k)` and `backward(k)` say of which stage and item the k-th is.
template <class Forward, class Backward>
constexpr void add_alternating(program& p, int count, warmup t, Forward const& forward, Backward const& backward)
{
    auto const ahead = std::min(t.forwards, count);
    auto const add_item = [&](stage_item i, instruction_kind kind) { add(p, i.stage, kind, i.item); };
    for (int k = 0; k < count + ahead + t.deferred_weights; ++k) {
        if (k < count) {
            add_item(forward(k), instruction_kind::forward);
        }
        if (k >= ahead && k < count + ahead) {
            add_item(backward(k - ahead), t.split ? instruction_kind::input_gradient : instruction_kind::backward);
        }
        if (t.split && k >= ahead + t.deferred_weights) {
            add_item(backward(k - ahead - t.deferred_weights), instruction_kind::weight_gradient);
        }
    }
}

/// The program of v chunks per rank in groups of g, rank r `ahead` times its distance from the last rank and one group per
/// further chunk ahead, and `behind` times its distance from the first one behind. @pre chunks >= 1, group >= 1
template <class OnlyWhenCalled = void>
constexpr program alternate_1f1b(schedule_shape shape, warmup per_rank)
{
    auto result = placed_program(shape.ranks, loop_placement(shape.ranks, shape.chunks));
    auto const items = grouped(shape.chunks, shape.microbatches, shape.group);
    auto const item = [&](int k) { return items[static_cast<std::size_t>(k)]; };
    for (int rank = 0; rank < shape.ranks; ++rank) {
        warmup const t{per_rank.forwards * (shape.ranks - 1 - rank) + (shape.chunks - 1) * shape.group, per_rank.deferred_weights * rank, per_rank.split};
        auto const at_chunk = [&](int chunk, int k) { return stage_item{stage_id{chunk * shape.ranks + rank}, item(k).microbatch}; };
        add_alternating(
            result, static_cast<int>(items.size()), t, [&](int k) { return at_chunk(item(k).chunk, k); },
            [&](int k) { return at_chunk(shape.chunks - 1 - item(k).chunk, k); });
    }
    return result;
}

/// The same with one stage per rank.
template <class OnlyWhenCalled = void>
constexpr program alternate_one_stage(schedule_shape shape, warmup per_rank)
{
    return alternate_1f1b({.ranks = shape.ranks, .microbatches = shape.microbatches, .chunks = 1, .group = 1}, per_rank);
}

}  // namespace rheo::inline v0::detail
