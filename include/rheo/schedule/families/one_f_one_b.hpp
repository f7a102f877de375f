#pragma once
// SPDX-License-Identifier: Apache-2.0

// 1F1B (PipeDream-Flush; Narayanan et al., ICML 2021, section 2.2): rank r runs p - 1 - r forwards
// ahead, then one forward and one backward in turn, then the backwards that are left. The bubble is
// that of GPipe, but rank r holds at most p - r microbatches instead of all.

#include <string_view>

#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/families/alternate_1f1b.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

struct one_f_one_b {
    static constexpr std::string_view name = "1f1b";
    static constexpr std::string_view source = "Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021, section 2.2";
    static constexpr bool peaks_grow = true;

    /// The compute program of a whole step. @pre ranks >= 1, microbatches >= 0
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<one_f_one_b>(shape);
        return detail::alternate_one_stage(shape, {.forwards = 1});
    }

    /// The compute program of `work`, in its order. @pre ranks >= 1; 0 <= deepest <= ranks, each microbatch once
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(int ranks, array_view<stage_work const> work)
    {
        return program_of_work<one_f_one_b>(ranks, work);
    }

    friend constexpr bool operator==(one_f_one_b, one_f_one_b) = default;
};

}  // namespace rheo::inline v0
