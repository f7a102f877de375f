#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a run of a pipeline's program knows of each stage and item: what is computed, sent and here. The interpretation keeps such
// a table, and whatever else walks a program in its order: lowering, completeness, peaks, bounds, step counts.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/schedule/core/program.hpp"

namespace rheo::inline v0::detail {

/// What is known of (stage, microbatch) in a pipeline.
enum fact : std::uint8_t {
    forward_done = 1,
    gradient_done = 2,  ///< the gradient of the stage's input exists (B or I)
    weight_done = 4,
    activation_here = 8,  ///< the receive of the stage's input is done (non-blocking: posted)
    gradient_here = 16,   ///< the same for the gradient of the stage's output
    activation_sent = 32,
    gradient_sent = 64,
    evicted = 128,  ///< the activation is not there until it is recomputed
};

/// The items of a program: tables of them begin at the lowest one, so that they are as small as the pipeline's own work.
struct item_range {
    int first = 0;  ///< of a whole microbatch
    std::size_t count = 0;

    constexpr bool contains(int item) const { return item >= first && static_cast<std::size_t>(item - first) < count; }
    constexpr std::size_t place(int item) const { return static_cast<std::size_t>(item - first); }
};

struct pipeline_facts {
    std::size_t stages = 0;
    item_range items{};
    std::size_t first_row = 0;
    std::vector<std::uint8_t> facts;
    int chain = 0;   ///< stages per copy of the model
    int slices = 1;  ///< of a microbatch

    constexpr std::size_t slot(int stage, int item) const { return static_cast<std::size_t>(stage) * items.count + items.place(item); }
    constexpr std::uint8_t& of(int stage, int item) { return facts[slot(stage, item)]; }
    constexpr bool holds(int stage, int item, int bits) { return (of(stage, item) & bits) == bits; }
    constexpr bool begins_copy(int stage) const { return stage % chain == 0; }
    constexpr bool ends_copy(int stage) const { return (stage + 1) % chain == 0; }

    /// True when the slices before (forward) or behind (backward) in the same microbatch are done on the stage.
    constexpr bool slices_done(int stage, int item, bool forward)
    {
        if (forward) {
            return item % slices == 0 || holds(stage, item - 1, forward_done);
        }
        return (item + 1) % slices == 0 || (items.contains(item + 1) && holds(stage, item + 1, gradient_done));
    }
};

constexpr item_range item_range_of(program const& p)
{
    int first = -1;
    int last = -1;
    for (auto const& row : p.rows) {
        for (auto const& i : row) {
            if (!is_reduction(i.kind) && i.item >= 0) {
                first = first < 0 || i.item < first ? i.item : first;
                last = i.item > last ? i.item : last;
            }
        }
    }
    first = first < 0 ? 0 : first / p.slices * p.slices;
    return {first, static_cast<std::size_t>(last + 1 > first ? last + 1 - first : 0)};
}

/// One more than the largest item of a program.
constexpr std::size_t item_count(program const& p)
{
    auto const items = item_range_of(p);
    return static_cast<std::size_t>(items.first) + items.count;
}

template <class OnlyWhenCalled = void>
constexpr pipeline_facts facts_of(program const& p, std::size_t first_row)
{
    pipeline_facts result{p.placement.size(), item_range_of(p), first_row, {}, stages_per_copy(p), p.slices};
    result.facts.resize(result.stages * result.items.count, 0);
    return result;
}

/// The instruction that a transfer meets, on the row where it should be.
constexpr instruction counterpart(instruction i)
{
    switch (i.kind) {
    case instruction_kind::send_activation: return {instruction_kind::receive_activation, static_cast<std::int16_t>(i.stage + 1), i.item};
    case instruction_kind::receive_activation: return {instruction_kind::send_activation, static_cast<std::int16_t>(i.stage - 1), i.item};
    case instruction_kind::send_gradient: return {instruction_kind::receive_gradient, static_cast<std::int16_t>(i.stage - 1), i.item};
    case instruction_kind::receive_gradient: return {instruction_kind::send_gradient, static_cast<std::int16_t>(i.stage + 1), i.item};
    default: return i;
    }
}

}  // namespace rheo::inline v0::detail
