#pragma once
// SPDX-License-Identifier: Apache-2.0

// Looped breadth-first (Lamy-Poirier, MLSys 2023, section 3): interleaved chunks, each taken through all microbatches before
// the next, first forwards, then backwards from the last chunk. GPipe with a fill and drain of one v-th, and few changes of
// the stage that a rank works on.

#include <string_view>

#include "rheo/schedule/core/placement.hpp"
#include "rheo/schedule/core/row_builder.hpp"
#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/families/interleaved_order.hpp"

namespace rheo::inline v0 {

struct looped_bfs {
    static constexpr std::string_view name = "looped-bfs";
    static constexpr std::string_view source = "Lamy-Poirier, Breadth-First Pipeline Parallelism, MLSys 2023, section 3";
    static constexpr bool peaks_grow = true;

    static constexpr schedule_options takes{.chunks = true};

    /// The compute program of a whole step. @pre error_of says none
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<looped_bfs>(shape);
        auto const stages = shape.ranks * detail::chunks_of(shape);
        auto result = detail::placed_program(shape.ranks, loop_placement(shape.ranks, detail::chunks_of(shape)));
        for (int k = 0; k < 2 * stages; ++k) {
            auto const stage = stage_id{k < stages ? k : 2 * stages - 1 - k};
            for (int m = 0; m < shape.microbatches; ++m) {
                detail::add(result, stage, k < stages ? instruction_kind::forward : instruction_kind::backward, microbatch_id{m});
            }
        }
        return result;
    }

    friend constexpr bool operator==(looped_bfs, looped_bfs) = default;
};

}  // namespace rheo::inline v0
