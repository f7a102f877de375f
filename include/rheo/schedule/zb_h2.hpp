#pragma once
// SPDX-License-Identifier: Apache-2.0

// ZB-H2 (Qi et al., ICLR 2024, section 2.3): ZB-H1 with twice as many forwards ahead, so that no rank idles between its first
// and its last instruction at f = i = w. Each rank holds up to 2 p - 1 microbatches. With fewer of them than that it is
// sound but not without bubbles.

#include <string_view>

#include "rheo/schedule/in_turn.hpp"
#include "rheo/schedule/schedule.hpp"

namespace rheo::inline v0 {

struct zb_h2 {
    static constexpr std::string_view name = "zb-h2";
    static constexpr std::string_view source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 2.3";
    static constexpr bool peaks_grow = true;

    /// The compute program of a whole step. @pre fault_of says none
    template <class = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<zb_h2>(shape);
        return detail::one_stage_in_turn(shape, {.ahead = 2, .behind = 2, .split = true});
    }

    friend constexpr bool operator==(zb_h2, zb_h2) = default;
};

}  // namespace rheo::inline v0
