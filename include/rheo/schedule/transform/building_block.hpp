#pragma once
// SPDX-License-Identifier: Apache-2.0

// Schedules from a building block (Qi et al., NeurIPS 2024, section 3): when the instructions of one
// microbatch are set out in time so that the block, repeated every `period` slots, never puts two on one
// rank at once, the repetition is a schedule, and how long activations live in the block over the period
// is its memory. Rows keep the order of the repetition; run as soon as possible, fill and drain close up.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/row_builder.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// One microbatch in time, in slots that each hold one forward, input gradient or weight gradient.
struct building_block {
    std::vector<int> placement;  ///< stage -> rank
    std::vector<int> forward;    ///< stage -> slot
    std::vector<int> input_gradient;
    std::vector<int> weight_gradient;
    int period;

    friend constexpr bool operator==(building_block const&, building_block const&) = default;
};

namespace detail {

/// The slot of an instruction kind in the block.
constexpr int slot_of(building_block const& block, instruction_kind kind, std::size_t stage)
{
    return kind == instruction_kind::forward          ? block.forward[stage]
           : kind == instruction_kind::input_gradient ? block.input_gradient[stage]
                                                      : block.weight_gradient[stage];
}

inline constexpr instruction_kind split_kinds[] = {instruction_kind::forward, instruction_kind::input_gradient, instruction_kind::weight_gradient};

/// An instruction of the block on a rank: the first of a sequence with one member per microbatch.
struct block_entry {
    instruction_kind kind;
    stage_id stage;
    int slot;
};

template <class OnlyWhenCalled = void>
constexpr std::vector<block_entry> entries_of(building_block const& block, int rank)
{
    std::vector<block_entry> entries;
    for (std::size_t s = 0; s < block.placement.size(); ++s) {
        for (auto const kind : split_kinds) {
            if (block.placement[s] == rank) {
                entries.push_back({kind, stage_id{static_cast<int>(s)}, slot_of(block, kind, s)});
            }
        }
    }
    return entries;
}

}  // namespace detail

/// Whether the block can be repeated: each instruction after what it needs, no two of a rank in the same slot of the period.
/// @pre one slot of each kind per stage, period >= 1, slots >= 0
template <class OnlyWhenCalled = void>
constexpr bool repeats(building_block const& block, int ranks)
{
    for (std::size_t s = 0; s < block.placement.size(); ++s) {
        bool const last = s + 1 == block.placement.size();
        if ((!last && block.forward[s + 1] <= block.forward[s]) || (!last && block.input_gradient[s] <= block.input_gradient[s + 1]) ||
            block.input_gradient[s] <= block.forward[s] || block.weight_gradient[s] <= block.input_gradient[s]) {
            return false;
        }
    }
    for (int rank = 0; rank < ranks; ++rank) {
        auto const entries = detail::entries_of(block, rank);
        for (std::size_t a = 0; a < entries.size(); ++a) {
            for (std::size_t b = 0; b < a; ++b) {
                if ((entries[a].slot - entries[b].slot) % block.period == 0) {
                    return false;
                }
            }
        }
    }
    return true;
}

/// The compute program of `microbatches` repetitions. Cost: instructions x stages per rank. @pre repeats(block, ranks)
template <class OnlyWhenCalled = void>
constexpr program repeated(building_block const& block, int ranks, int microbatches)
{
    expects(repeats(block, ranks), "this building block meets itself when it is repeated");
    auto result = detail::placed_program(ranks, block.placement);
    for (int rank = 0; rank < ranks; ++rank) {
        auto const entries = detail::entries_of(block, rank);
        std::vector<int> done(entries.size(), 0);
        for (std::size_t count = 0; count < entries.size() * static_cast<std::size_t>(microbatches); ++count) {
            std::size_t first = entries.size();
            for (std::size_t e = 0; e < entries.size(); ++e) {
                auto const slot = [&](std::size_t k) { return entries[k].slot + done[k] * block.period; };
                if (done[e] < microbatches && (first == entries.size() || slot(e) < slot(first))) {
                    first = e;
                }
            }
            detail::add(result, entries[first].stage, entries[first].kind, microbatch_id{done[first]++});
        }
    }
    return result;
}

/// The block with each weight gradient moved to the earliest free slot behind its input gradient. @pre period >= 3 x stages per rank
template <class OnlyWhenCalled = void>
constexpr building_block with_weight_gradients(building_block block, int ranks)
{
    block.weight_gradient.assign(block.placement.size(), -1);
    for (int rank = 0; rank < ranks; ++rank) {
        std::vector<std::uint8_t> taken(static_cast<std::size_t>(block.period), 0);
        auto const stages = block.placement.size();
        for (std::size_t s = 0; s < stages; ++s) {
            if (block.placement[s] == rank) {
                taken[static_cast<std::size_t>(block.forward[s] % block.period)] = 1;
                taken[static_cast<std::size_t>(block.input_gradient[s] % block.period)] = 1;
            }
        }
        for (std::size_t s = stages; s-- > 0;) {  // the last stage's input gradient comes first
            if (block.placement[s] == rank) {
                auto slot = block.input_gradient[s] + 1;
                while (taken[static_cast<std::size_t>(slot % block.period)] != 0) {
                    ++slot;
                }
                taken[static_cast<std::size_t>(slot % block.period)] = 1;
                block.weight_gradient[s] = slot;
            }
        }
    }
    return block;
}

}  // namespace rheo::inline v0
