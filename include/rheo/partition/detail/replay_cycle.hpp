#pragma once
// SPDX-License-Identifier: Apache-2.0

// The part of a replay that repeats: the same steps block after block, each block for later items. Times of a replay are sums and maxima, so once
// blocks take as long as the one before, all that follow do, exactly (a max-plus linear system in its periodic regime: Baccelli et al.,
// "Synchronization and Linearity", 1992, ch. 3), and are skipped. With a thousand microbatches a replay looks at some ten of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/schedule/core/instruction.hpp"

namespace rheo::inline v0::detail {

inline constexpr std::int32_t no_slot = -1;

/// One computation of a replay: what it waits for and what its end makes known, by their places in the table of times.
struct replay_step {
    std::int32_t row;
    std::int8_t part;  ///< 0: alone, 1 and 2: of an overlapped pair
    instruction_kind kind;
    std::int32_t stage;
    std::int32_t partner_stage;
    std::int32_t own = no_slot;           ///< what its end makes known
    std::int32_t input = no_slot;         ///< what it waits for
    std::int32_t sender = no_slot;        ///< twice the sending stage, one more for gradients, when that crosses ranks
    std::int32_t second_input = no_slot;  ///< of the partner
    std::int32_t second_sender = no_slot;

    friend constexpr bool operator==(replay_step const&, replay_step const&) = default;
};

/// Blocks of steps that repeat; none where `blocks` is 0.
struct replay_cycle {
    /// What a step behind the blocks waits for and a block made known.
    struct late_input {
        std::size_t step;  ///< that makes it known
        std::int32_t slot;
    };

    std::size_t begin = 0;  ///< of the first block
    std::size_t period = 0;
    std::size_t blocks = 0;
    std::int32_t shift = 0;    ///< of slots, from a block to the next
    std::size_t lookback = 1;  ///< blocks before a step's own from which its inputs come, at most; at least 1
    std::vector<std::size_t> rows{};
    std::vector<late_input> late{};

    constexpr std::size_t end() const { return begin + period * blocks; }
};

/// The same step for items whose slots are so many further on.
constexpr replay_step shifted(replay_step s, std::int32_t shift)
{
    for (auto* const slot : {&s.own, &s.input, &s.second_input}) {
        *slot += *slot == no_slot ? 0 : shift;
    }
    return s;
}

/// The longest run of blocks of this length around the middle. @param items of a block
template <class OnlyWhenCalled = void>
constexpr replay_cycle cycle_of(std::vector<replay_step> const& steps, std::size_t period, std::size_t items)
{
    replay_cycle cycle{.period = period, .shift = static_cast<std::int32_t>(2 * items)};
    auto const repeats = [&](std::size_t i) { return steps[i + period] == shifted(steps[i], cycle.shift); };
    auto const middle = steps.size() / 2;
    if (period == 0 || middle + period >= steps.size() || !repeats(middle)) {
        return {};
    }
    cycle.begin = middle;
    while (cycle.begin > 0 && repeats(cycle.begin - 1)) {
        --cycle.begin;
    }
    auto last = middle;  // that is repeated
    while (last + 1 + period < steps.size() && repeats(last + 1)) {
        ++last;
    }
    cycle.blocks = (last + 1 + period - cycle.begin) / period;
    return cycle;
}

/// Looks up what the steps of a block, and those behind all blocks, wait for. @returns false when that is not a block's
template <class OnlyWhenCalled = void>
constexpr bool look_back(replay_cycle& cycle, std::vector<replay_step> const& steps, std::size_t slots)
{
    std::vector<std::size_t> made_by(slots, steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].own != no_slot) {
            made_by[static_cast<std::size_t>(steps[i].own)] = i;
        }
    }
    auto const last = cycle.begin + (cycle.blocks - 1) * cycle.period;
    for (auto i = last; i < steps.size(); ++i) {
        for (auto const input : {steps[i].input, steps[i].second_input}) {
            if (input == no_slot) {
                continue;
            }
            auto const maker = made_by[static_cast<std::size_t>(input)];
            bool const of_block = maker >= cycle.begin && maker < cycle.end();
            if (i >= cycle.end()) {
                if (of_block) {
                    cycle.late.push_back({maker, input});
                }
                continue;
            }
            if (!of_block) {
                return false;
            }
            cycle.lookback = std::max(cycle.lookback, cycle.blocks - 1 - (maker - cycle.begin) / cycle.period);
        }
    }
    for (auto i = last; i < cycle.end(); ++i) {
        if (std::find(cycle.rows.begin(), cycle.rows.end(), static_cast<std::size_t>(steps[i].row)) == cycle.rows.end()) {
            cycle.rows.push_back(static_cast<std::size_t>(steps[i].row));
        }
    }
    return cycle.lookback + 2 < cycle.blocks;
}

/// The shortest blocks that repeat. @param items of the program @param slices of a microbatch
/// Cost: linear in the steps.
template <class OnlyWhenCalled = void>
constexpr replay_cycle find_cycle(std::vector<replay_step> const& steps, std::size_t slots, std::size_t items, std::size_t slices)
{
    for (auto const each : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
        auto const block = each * slices;
        if (block == 0 || items < 8 * block) {
            break;
        }
        auto cycle = cycle_of(steps, steps.size() / items * block, block);
        if (cycle.blocks > 0 && look_back(cycle, steps, slots)) {
            return cycle;
        }
    }
    return {};
}

}  // namespace rheo::inline v0::detail
