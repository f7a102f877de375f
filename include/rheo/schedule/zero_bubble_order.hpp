#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the zero-bubble schedules of one stage per rank share: rank r runs `ahead` forwards before its
// first input gradient, and each weight gradient `behind` input gradients after its own.

#include <algorithm>

#include "rheo/schedule/placement.hpp"
#include "rheo/schedule/row_builder.hpp"
#include "rheo/schedule/schedule.hpp"

namespace rheo::inline v0::detail {

/// How far forwards and weight gradients are from input gradients per place along the pipeline.
struct zero_bubble_distances {
    int ahead;   ///< times p - 1 - r
    int behind;  ///< times r
};

constexpr program zero_bubble_order(schedule_shape shape, zero_bubble_distances per_rank)
{
    auto result = placed_program(shape.ranks, loop_placement(shape.ranks, 1));
    auto const m = shape.microbatches;
    for (int rank = 0; rank < shape.ranks; ++rank) {
        auto const ahead = std::min(per_rank.ahead * (shape.ranks - 1 - rank), m);
        auto const behind = per_rank.behind * rank;
        for (int k = 0; k < m + ahead + behind; ++k) {
            if (k < m) {
                add(result, stage_id{rank}, instruction_kind::forward, microbatch_id{k});
            }
            if (k >= ahead && k < m + ahead) {
                add(result, stage_id{rank}, instruction_kind::input_gradient, microbatch_id{k - ahead});
            }
            if (k >= ahead + behind) {
                add(result, stage_id{rank}, instruction_kind::weight_gradient, microbatch_id{k - ahead - behind});
            }
        }
    }
    return result;
}

}  // namespace rheo::inline v0::detail
