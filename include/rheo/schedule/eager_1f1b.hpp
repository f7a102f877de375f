#pragma once
// SPDX-License-Identifier: Apache-2.0

// Eager 1F1B (Zhuang et al., MLSys 2023, section 4): 1F1B with twice as many forwards ahead, 2 (p - 1 - r) on rank r, so that
// a transfer may take as long as a computation without holding up the steady state. Rank r holds 2 (p - r) - 1 microbatches.

#include <algorithm>
#include <span>
#include <string_view>

#include "rheo/schedule/placement.hpp"
#include "rheo/schedule/row_builder.hpp"
#include "rheo/schedule/schedule.hpp"

namespace rheo::inline v0 {

struct eager_1f1b {
    static constexpr std::string_view name = "eager-1f1b";
    static constexpr std::string_view source = "Zhuang et al., On Optimizing the Communication of Model Parallelism, MLSys 2023, section 4";


    /// The compute program of a whole step. @pre fault_of says none
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<eager_1f1b>(shape);
        auto result = detail::placed_program(shape.ranks, loop_placement(shape.ranks, 1));
        for (int rank = 0; rank < shape.ranks; ++rank) {
            auto const ahead = std::min(2 * (shape.ranks - 1 - rank), shape.microbatches);
            for (int k = 0; k < shape.microbatches + ahead; ++k) {
                if (k < shape.microbatches) {
                    detail::add(result, stage_id{rank}, instruction_kind::forward, microbatch_id{k});
                }
                if (k >= ahead) {
                    detail::add(result, stage_id{rank}, instruction_kind::backward, microbatch_id{k - ahead});
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

    friend constexpr bool operator==(eager_1f1b, eager_1f1b) = default;
};

}  // namespace rheo::inline v0
