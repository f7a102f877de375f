#pragma once
// SPDX-License-Identifier: Apache-2.0

// Seq1F1B (Ao et al., 2024, section 3.2): each microbatch is cut into k slices along its sequence. Forwards take the slices in
// order, since a token sees those before it; backwards in reverse. Fill and drain pass slices: a k-th of the bubble. Rank r
// runs p - 1 - r + k - 1 slices ahead: k - 1 more than 1F1B, since the last slice comes back first.

#include <algorithm>
#include <span>
#include <string_view>

#include "rheo/schedule/placement.hpp"
#include "rheo/schedule/row_builder.hpp"
#include "rheo/schedule/schedule.hpp"

namespace rheo::inline v0 {

struct seq1f1b {
    static constexpr std::string_view name = "seq1f1b";
    static constexpr std::string_view source = "Ao et al., Seq1F1B: Efficient Sequence-Level Pipeline Parallelism, arXiv 2406.03488, section 3.2";

    static constexpr schedule_options takes{.slices = true};

    /// The compute program of a whole step. @pre fault_of says none
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<seq1f1b>(shape);
        auto const slices = shape.slices == 0 ? 2 : shape.slices;
        auto const items = shape.microbatches * slices;
        auto result = detail::placed_program(shape.ranks, loop_placement(shape.ranks, 1));
        result.slices = slices;
        for (int rank = 0; rank < shape.ranks; ++rank) {
            auto const ahead = std::min(shape.ranks - 1 - rank + slices - 1, items);
            for (int k = 0; k < items + ahead; ++k) {
                if (k < items) {
                    detail::add(result, stage_id{rank}, instruction_kind::forward, microbatch_id{k});
                }
                if (k >= ahead) {
                    auto const b = k - ahead;
                    auto const last_first = b / slices * slices + slices - 1 - b % slices;
                    detail::add(result, stage_id{rank}, instruction_kind::backward, microbatch_id{last_first});
                }
            }
        }
        return result;
    }

    /// The compute program of `work`, in its order, as a step of so many microbatches. @pre as above; deepest within the pipeline
    static constexpr rheo::program program(int ranks, std::span<stage_work const> work)
    {
        return detail::restricted(program({.ranks = ranks, .microbatches = static_cast<int>(work.size())}), work);
    }

    friend constexpr bool operator==(seq1f1b, seq1f1b) = default;
};

}  // namespace rheo::inline v0
