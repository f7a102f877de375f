#pragma once
// SPDX-License-Identifier: Apache-2.0

// BitPipe (Wu et al., 2024, section 3): Chimera's two directions, each interleaved in a V of two chunks per rank, so that the turn
// of the V needs no transfer. The order of a rank follows from a rehearsal at f = 1, b = 2 per chunk, which takes what is ready,
// backwards first, with at most p stages' activations per rank, 2 p when m > 2 p.

#include <span>
#include <string_view>

#include "rheo/schedule/list_schedule.hpp"
#include "rheo/schedule/placement.hpp"
#include "rheo/schedule/row_builder.hpp"
#include "rheo/schedule/schedule.hpp"

namespace rheo::inline v0 {

struct bitpipe {
    static constexpr std::string_view name = "bitpipe";
    static constexpr std::string_view source = "Wu et al., BitPipe: Bidirectional Interleaved Pipeline Parallelism, arXiv 2410.19367, section 3";


    /// Two directions need an even number of ranks, and of microbatches.
    static constexpr shape_fault fault(schedule_shape shape)
    {
        if (shape.ranks % 2 != 0) {
            return shape_fault::odd_ranks;
        }
        return shape.microbatches % 2 != 0 ? shape_fault::odd_microbatches : shape_fault::none;
    }

    /// The compute program of a whole step. @pre fault_of says none
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<bitpipe>(shape);
        auto const p = shape.ranks;
        auto const held = shape.microbatches > 2 * p ? 2 * p : p;
        return list_schedule({.ranks = p, .placement = both_directions(v_placement(p, 2), p), .costs = unit_costs(4 * p),
                                 .microbatches = shape.microbatches, .copies = 2, .cap = bytes{2 * held}})
            .what;
    }

    /// The compute program of `work`, in its order, as a step of so many microbatches. @pre as above; deepest within the pipeline
    static constexpr rheo::program program(int ranks, std::span<stage_work const> work)
    {
        return detail::restricted(program({.ranks = ranks, .microbatches = static_cast<int>(work.size())}), work);
    }

    friend constexpr bool operator==(bitpipe, bitpipe) = default;
};

}  // namespace rheo::inline v0
