#pragma once
// SPDX-License-Identifier: Apache-2.0

// BitPipe (Wu et al., 2024, section 3): Chimera's two directions, each interleaved in a V of two chunks per rank, so that the turn
// of the V needs no transfer. Up to m = p the order is that of the slots at f = b, a pair of microbatches every other slot, where
// the four chunks of a rank fit together without collisions: at m = p the paper's bubble, (p - 2) / (3 m + p - 2) of the step at
// b = 2 f, and its p stages' activations. The paper claims that figure for m > p as well. There our order follows from a
// rehearsal at f = 1, b = 2 per chunk, which takes what is ready, backwards first, with at most p stages' activations per
// rank, 2 p when m > 2 p; it does not reach the figure (p = 4, m = 8: 2.5 full stages' forwards of bubble against 2).

#include <string_view>

#include "rheo/schedule/list_schedule.hpp"
#include "rheo/schedule/placement.hpp"
#include "rheo/schedule/schedule.hpp"
#include "rheo/schedule/two_directions.hpp"

namespace rheo::inline v0 {

struct bitpipe {
    static constexpr std::string_view name = "bitpipe";
    static constexpr std::string_view source = "Wu et al., BitPipe: Bidirectional Interleaved Pipeline Parallelism, arXiv 2410.19367, section 3";

    static constexpr shape_fault fault(schedule_shape shape) { return detail::two_directions_fault(shape); }

    /// The compute program of a whole step. @pre fault_of says none
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<bitpipe>(shape);
        auto const p = shape.ranks;
        if (shape.microbatches <= p) {
            return detail::pairs_in_slots({.ranks = p, .microbatches = shape.microbatches, .chunks = 2}, 2 * p);
        }
        auto const held = shape.microbatches > 2 * p ? 2 * p : p;
        return list_schedule({.ranks = p, .placement = both_directions(v_placement(p, 2), p), .costs = unit_costs(4 * p),
                                 .microbatches = shape.microbatches, .copies = 2, .cap = bytes{2 * held}})
            .what;
    }

    friend constexpr bool operator==(bitpipe, bitpipe) = default;
};

}  // namespace rheo::inline v0
