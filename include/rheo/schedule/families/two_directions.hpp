#pragma once
// SPDX-License-Identifier: Apache-2.0

// What Chimera and BitPipe share: two copies of the model run through the same ranks in opposite directions, in pairs of
// microbatches, one per direction, a pair every other slot. At f = b a microbatch then moves one stage per slot, down and back
// up, and since p is even the two directions of a rank fall on slots of different parity and never meet.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/schedule/core/placement.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/row_builder.hpp"
#include "rheo/schedule/core/schedule.hpp"

namespace rheo::inline v0::detail {

/// Two directions need an even number of ranks, and of microbatches.
constexpr shape_error two_directions_error(schedule_shape shape)
{
    if (shape.ranks % 2 != 0) {
        return shape_error::odd_ranks;
    }
    return shape.microbatches % 2 != 0 ? shape_error::odd_microbatches : shape_error::none;
}

/// The order of the slots for V-placed chunks; a microbatch's last stage begins its backward `turn` slots after the first forward.
/// @pre chunks >= 1; the slots of a rank do not meet: turn >= stages of a copy, and of microbatches for one chunk; else m <= p
template <class OnlyWhenCalled = void>
constexpr program pairs_in_slots(schedule_shape shape, int turn)
{
    auto const stages = shape.ranks * shape.chunks;
    auto result = placed_program(shape.ranks, both_directions(v_placement(shape.ranks, shape.chunks), shape.ranks), 2);
    constexpr instruction idle{instruction_kind::overlap, 0, 0};
    auto const slots = static_cast<std::size_t>(shape.microbatches + turn + stages);
    std::vector<std::vector<instruction>> rows(result.rows.size(), std::vector<instruction>(slots, idle));
    for (int m = 0; m < shape.microbatches; ++m) {
        auto const begin = m / 2 * 2;
        for (int k = 0; k < stages; ++k) {
            auto const stage = m % 2 * stages + k;
            auto& row = rows[static_cast<std::size_t>(result.placement[static_cast<std::size_t>(stage)])];
            row[static_cast<std::size_t>(begin + k)] = {instruction_kind::forward, static_cast<std::int16_t>(stage), m};
            row[static_cast<std::size_t>(begin + turn + stages - 1 - k)] = {instruction_kind::backward, static_cast<std::int16_t>(stage), m};
        }
    }
    for (std::size_t rank = 0; rank < rows.size(); ++rank) {
        for (auto const& i : rows[rank]) {
            if (i != idle) {
                result.rows[rank].push_back(i);
            }
        }
    }
    return result;
}

}  // namespace rheo::inline v0::detail
