#pragma once
// SPDX-License-Identifier: Apache-2.0

// Seq1F1B (Ao et al., 2024, section 3.2): each microbatch is cut into k slices along its sequence. Forwards take the slices in
// order, since a token sees those before it; backwards in reverse. Fill and drain pass slices: a k-th of the bubble. Rank r
// runs p - 1 - r + k - 1 slices ahead: k - 1 more than 1F1B, since the last slice comes back first.

#include <string_view>

#include "rheo/schedule/core/placement.hpp"
#include "rheo/schedule/core/row_builder.hpp"
#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/families/alternate_1f1b.hpp"

namespace rheo::inline v0 {

struct seq1f1b {
    static constexpr std::string_view name = "seq1f1b";
    static constexpr std::string_view source = "Ao et al., Seq1F1B: Efficient Sequence-Level Pipeline Parallelism, arXiv 2406.03488, section 3.2";
    static constexpr bool peaks_grow = true;

    static constexpr schedule_options takes{.slices = true};

    /// The compute program of a whole step. @pre error_of says none
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<seq1f1b>(shape);
        auto const slices = shape.slices == 0 ? 2 : shape.slices;
        auto result = detail::placed_program(shape.ranks, loop_placement(shape.ranks, 1));
        result.slices = slices;
        for (int rank = 0; rank < shape.ranks; ++rank) {
            auto const item = [&](int k) { return detail::stage_item{stage_id{rank}, microbatch_id{k}}; };
            auto const last_first = [&](int k) { return item(k / slices * slices + slices - 1 - k % slices); };
            detail::add_alternating(result, shape.microbatches * slices, {.forwards = shape.ranks - 1 - rank + slices - 1}, item, last_first);
        }
        return result;
    }

    friend constexpr bool operator==(seq1f1b, seq1f1b) = default;
};

}  // namespace rheo::inline v0
