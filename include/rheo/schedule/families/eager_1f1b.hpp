#pragma once
// SPDX-License-Identifier: Apache-2.0

// Eager 1F1B (Zhuang et al., MLSys 2023, section 4): 1F1B with twice as many forwards ahead, 2 (p - 1 - r) on rank r, so that
// a transfer may take as long as a computation without holding up the steady state. Rank r holds 2 (p - r) - 1 microbatches.

#include <string_view>

#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/families/alternate_1f1b.hpp"

namespace rheo::inline v0 {

struct eager_1f1b {
    static constexpr std::string_view name = "eager-1f1b";
    static constexpr std::string_view source = "Zhuang et al., On Optimizing the Communication of Model Parallelism, MLSys 2023, section 4";
    static constexpr bool peaks_grow = true;

    /// The compute program of a whole step. @pre error_of says none
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<eager_1f1b>(shape);
        return detail::alternate_one_stage(shape, {.forwards = 2});
    }

    friend constexpr bool operator==(eager_1f1b, eager_1f1b) = default;
};

}  // namespace rheo::inline v0
