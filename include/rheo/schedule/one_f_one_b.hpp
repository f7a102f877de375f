#pragma once
// SPDX-License-Identifier: Apache-2.0

// 1F1B (PipeDream-Flush; Narayanan et al., ICML 2021, section 2.2): rank r runs p - 1 - r forwards
// ahead, then one forward and one backward in turn, then the backwards that are left. The bubble is
// that of GPipe, but rank r holds at most p - r microbatches instead of all.

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

#include "rheo/schedule/row_builder.hpp"
#include "rheo/schedule/schedule.hpp"

namespace rheo::inline v0 {

struct one_f_one_b {
    static constexpr std::string_view name = "1f1b";
    static constexpr std::string_view source = "Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021, section 2.2";

    /// The compute program of a whole step. @pre ranks >= 1, microbatches >= 0
    static constexpr rheo::program program(schedule_shape shape)
    {
        return program(shape.ranks, whole_step(shape.microbatches));
    }

    /// The compute program of `work`, in its order. @pre ranks >= 1; 0 <= deepest <= ranks, each microbatch once
    static constexpr rheo::program program(int ranks, std::span<stage_work const> work)
    {
        auto result = detail::one_stage_per_rank(ranks, work);
        for (int rank = 0; rank < ranks; ++rank) {
            auto const ahead = std::min(static_cast<std::size_t>(ranks - 1 - rank), work.size());
            for (std::size_t m = 0; m < ahead; ++m) {
                detail::add_forward(result, stage_id{rank}, work[m]);
            }
            for (std::size_t m = ahead; m < work.size(); ++m) {
                detail::add_forward(result, stage_id{rank}, work[m]);
                detail::add_backward(result, stage_id{rank}, work[m - ahead]);
            }
            for (std::size_t m = work.size() - ahead; m < work.size(); ++m) {
                detail::add_backward(result, stage_id{rank}, work[m]);
            }
        }
        return result;
    }

    friend constexpr bool operator==(one_f_one_b, one_f_one_b) = default;
};

}  // namespace rheo::inline v0
