#pragma once
// SPDX-License-Identifier: Apache-2.0

// ZB-H1 (Qi et al., ICLR 2024, section 2.2): 1F1B with the backward split into input gradient and weight gradient. Forwards
// as in 1F1B; weight gradients wait, r behind on rank r, to fill the drain. A third of the bubble at f = i = w, and the
// memory of 1F1B's first rank on every rank.

#include <string_view>

#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/families/alternate_1f1b.hpp"

namespace rheo::inline v0 {

struct zb_h1 {
    static constexpr std::string_view name = "zb-h1";
    static constexpr std::string_view source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 2.2";
    static constexpr bool peaks_grow = true;

    /// The compute program of a whole step. @pre error_of says none
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<zb_h1>(shape);
        return detail::alternate_one_stage(shape, {.forwards = 1, .deferred_weights = 1, .split = true});
    }

    friend constexpr bool operator==(zb_h1, zb_h1) = default;
};

}  // namespace rheo::inline v0
