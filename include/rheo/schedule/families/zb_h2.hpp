#pragma once
// SPDX-License-Identifier: Apache-2.0

// ZB-H2 (Qi et al., ICLR 2024, section 2.3): ZB-H1 with twice as many forwards ahead, so that no rank idles between its first
// and its last instruction at f = i = w. Each rank holds up to 2 p - 1 microbatches. With fewer of them than that bubbles stay; a rank then goes
// beyond ZB-H1 by as many forwards, and weight gradients, as there are more microbatches than ranks: deferring more of them only puts them behind
// the last input gradient, while they are wanted before it, where the rank waits. So it is never longer than ZB-H1 (looked at: p up to 10).

#include <algorithm>
#include <string_view>

#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/families/alternate_1f1b.hpp"

namespace rheo::inline v0 {

struct zb_h2 {
    static constexpr std::string_view name = "zb-h2";
    static constexpr std::string_view source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 2.3";
    static constexpr bool peaks_grow = true;

    /// The compute program of a whole step. @pre error_of says none
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<zb_h2>(shape);
        auto const more = std::clamp(shape.microbatches - shape.ranks, 0, shape.ranks - 1);
        auto result = detail::placed_program(shape.ranks, loop_placement(shape.ranks, 1));
        for (int rank = 0; rank < shape.ranks; ++rank) {
            auto const below = shape.ranks - 1 - rank;
            auto const item = [&](int k) { return detail::stage_item{stage_id{rank}, microbatch_id{k}}; };
            detail::add_alternating(result, shape.microbatches,
                                    {.forwards = below + std::min(below, more), .deferred_weights = rank + std::min(rank, more), .split = true}, item, item);
        }
        return result;
    }

    friend constexpr bool operator==(zb_h2, zb_h2) = default;
};

}  // namespace rheo::inline v0
