#pragma once
// SPDX-License-Identifier: Apache-2.0

// DualPipeV (Qi et al., Sea AI Lab, 2025, "Cut-in-half"; order of the repository deepseek-ai/DualPipe): DualPipe folded at its middle. The
// two directions are the two arms of a V over the same ranks, so parameters are there once and p may be odd.

#include <string_view>

#include "rheo/schedule/core/placement.hpp"
#include "rheo/schedule/core/row_builder.hpp"
#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/families/dual_order.hpp"

namespace rheo::inline v0 {

struct dualpipe_v {
    static constexpr std::string_view name = "dualpipe-v";
    static constexpr std::string_view source =
        "Qi et al., DualPipe could be better without the Dual, Sea AI Lab 2025; order of the repository deepseek-ai/DualPipe";
    static constexpr bool peaks_grow = true;

    /// Enough microbatches to fill both arms of the V.
    static constexpr shape_error fault(schedule_shape shape)
    {
        return shape.microbatches < 2 * shape.ranks ? shape_error::fewer_than_twice_the_ranks : shape_error::none;
    }

    /// The compute program of a whole step. @pre error_of says none
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<dualpipe_v>(shape);
        auto const p = shape.ranks;
        auto result = detail::placed_program(p, v_placement(p, 2));
        for (int rank = 0; rank < p; ++rank) {
            detail::add_dual_order({&result, {rank, 2 * p - 1 - rank}, {0, 0}}, p - 1 - rank, rank + 1, shape.microbatches - 2 * p + rank + 1, rank == p - 1);
        }
        return result;
    }

    friend constexpr bool operator==(dualpipe_v, dualpipe_v) = default;
};

}  // namespace rheo::inline v0
