#pragma once
// SPDX-License-Identifier: Apache-2.0

// DualPipe (DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 3.2.1): microbatches enter from both ends; each rank holds two
// stages, one per direction, and computes a forward of one together with a backward of the other, whose communication the
// computation hides. Parameters are there twice; activations of p + 1 stages at most.

#include <algorithm>
#include <string_view>

#include "rheo/schedule/core/placement.hpp"
#include "rheo/schedule/core/row_builder.hpp"
#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/families/dual_order.hpp"

namespace rheo::inline v0 {

struct dualpipe {
    static constexpr std::string_view name = "dualpipe";
    static constexpr std::string_view source =
        "DeepSeek-AI, DeepSeek-V3 Technical Report, arXiv 2412.19437, section 3.2.1; order of the repository deepseek-ai/DualPipe";
    static constexpr bool peaks_grow = true;

    /// Two directions, and enough microbatches to fill both.
    static constexpr shape_error fault(schedule_shape shape)
    {
        if (shape.ranks % 2 != 0) {
            return shape_error::odd_ranks;
        }
        if (shape.microbatches < 2 * shape.ranks) {
            return shape_error::fewer_than_twice_the_ranks;
        }
        return shape.microbatches % 2 != 0 ? shape_error::odd_microbatches : shape_error::none;
    }

    /// The compute program of a whole step: the first half of the microbatches goes down, the second up. @pre error_of says none
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<dualpipe>(shape);
        auto const p = shape.ranks;
        auto const half = shape.microbatches / 2;
        auto result = detail::placed_program(p, both_directions(loop_placement(p, 1), p), 2);
        for (int rank = 0; rank < p; ++rank) {
            auto const inner = std::min(rank, p - 1 - rank);  // how far from the nearer end
            auto const down = rank;
            auto const up = 2 * p - 1 - rank;
            auto const row = rank < p / 2 ? detail::dual_row<>{&result, {down, up}, {0, half}} : detail::dual_row<>{&result, {up, down}, {half, 0}};
            detail::add_dual_order(row, p / 2 - 1 - inner, inner + 1, half - p + inner + 1, inner == p / 2 - 1);
        }
        return result;
    }

    friend constexpr bool operator==(dualpipe, dualpipe) = default;
};

}  // namespace rheo::inline v0
