#pragma once
// SPDX-License-Identifier: Apache-2.0

// BitPipe (Wu et al., 2024, section 3): Chimera's two directions, each interleaved in a V of two chunks per rank, so that the turn
// of the V needs no transfer. A unit of up to p microbatches has the order of the slots at f = b, a pair every other slot, where
// the four chunks of a rank fit together without collisions: at m = p the paper's bubble, (p - 2) / (3 m + p - 2) of the step at
// b = 2 f, and its p stages' activations. For m > p the paper puts units one after the other and lets forwards of a unit begin
// early, with the same p - 2 stages' forwards of bubble. Here that is the justification of the units in a row at f = 1, b = 2
// per chunk: p - 2 where p divides m, for p up to 10, and never more than half a forward above it (looked at: even m from p to
// 8 p, p up to 16). For that a rank holds up to 1.5 p stages' activations.

#include <string_view>

#include "rheo/schedule/core/row_builder.hpp"
#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/families/two_directions.hpp"
#include "rheo/schedule/transform/justify.hpp"

namespace rheo::inline v0 {

struct bitpipe {
    static constexpr std::string_view name = "bitpipe";
    static constexpr std::string_view source = "Wu et al., BitPipe: Bidirectional Interleaved Pipeline Parallelism, arXiv 2410.19367, section 3";

    static constexpr shape_error fault(schedule_shape shape) { return detail::two_directions_error(shape); }

    /// The compute program of a whole step. @pre error_of says none
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<bitpipe>(shape);
        auto const p = shape.ranks;
        auto units =
            detail::in_units(shape.microbatches, p, [&](int count) { return detail::pairs_in_slots({.ranks = p, .microbatches = count, .chunks = 2}, 2 * p); });
        if (shape.microbatches <= p) {
            return units;
        }
        return justified(units, unit_costs(4 * p));
    }

    friend constexpr bool operator==(bitpipe, bitpipe) = default;
};

}  // namespace rheo::inline v0
