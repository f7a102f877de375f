#pragma once
// SPDX-License-Identifier: Apache-2.0

// ZB-V (Qi et al., ICLR 2024, section 6): two chunks per rank in a V, so that the last stage meets the first on rank 0. At
// f = i = w no rank idles between its first and its last instruction, with 1F1B's memory: 2 p chunks of half a stage. Fewer
// microbatches than 2 p - 1 do not fill the V: then it is the order of 2 p - 1 without those that are not there, as in PyTorch's
// ScheduleZBVZeroBubble.

#include <algorithm>
#include <string_view>

#include "rheo/schedule/core/placement.hpp"
#include "rheo/schedule/core/row_builder.hpp"
#include "rheo/schedule/core/schedule.hpp"

namespace rheo::inline v0 {

struct zb_v {
    static constexpr std::string_view name = "zb-v";
    static constexpr std::string_view source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 6";
    static constexpr bool peaks_grow = true;

    /// The compute program of a whole step. @pre error_of says none
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<zb_v>(shape);
        auto const p = shape.ranks;
        auto const m = std::max(shape.microbatches, 2 * p - 1);
        auto result = detail::placed_program(p, v_placement(p, 2));
        for (int rank = 0; rank < p; ++rank) {
            int done[2][4] = {};  // chunk, kind -> how many
            auto const next = [&](int chunk, instruction_kind kind) {
                auto const stage = stage_id{chunk == 0 ? rank : 2 * p - 1 - rank};
                if (auto const microbatch = done[chunk][static_cast<int>(kind)]++; microbatch < shape.microbatches) {
                    detail::add(result, stage, kind, microbatch_id{microbatch});
                }
            };
            auto const forward = [&](int chunk) { next(chunk, instruction_kind::forward); };
            auto const input = [&](int chunk) { next(chunk, instruction_kind::input_gradient); };
            auto const weight = [&](int chunk) { next(chunk, instruction_kind::weight_gradient); };
            auto const unit = [&](int chunk) {  // a microbatch goes, and comes back where it can
                forward(chunk);
                input(chunk);
                weight(chunk);
            };
            for (int k = 0; k < 2 * (p - rank) - 1; ++k) {
                forward(0);
            }
            for (int k = 0; k < rank; ++k) {
                forward(1);
                forward(0);
            }
            for (int k = 0; k < p - rank; ++k) {
                unit(1);
            }
            auto& forwards = done[0][0];
            while (done[1][0] < forwards || forwards < m) {
                if (forwards < m) {
                    forward(0);
                }
                input(0);
                weight(0);
                unit(1);
            }
            for (int k = 0; k < rank; ++k) {
                input(0);
                input(1);
            }
            for (int k = 0; k < p - rank; ++k) {
                input(0);
                weight(0);
            }
            auto constexpr weights = static_cast<int>(instruction_kind::weight_gradient);
            while (done[1][weights] < m) {
                weight(1);
            }
            while (done[0][weights] < m) {
                weight(0);
            }
        }
        return result;
    }

    friend constexpr bool operator==(zb_v, zb_v) = default;
};

}  // namespace rheo::inline v0
