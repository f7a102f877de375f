#pragma once
// SPDX-License-Identifier: Apache-2.0

// Interleaved 1F1B (Narayanan et al., SC 2021, section 2.2): each rank holds v chunks, stage c p + r is chunk c of rank r, and
// the fill and drain of a pipeline take one v-th of the time. Microbatches pass in groups of g (Megatron-LM's
// microbatch-group-size-per-vp-stage); rank r runs 2 (p - 1 - r) + (v - 1) g forwards ahead.

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

#include "rheo/schedule/deadlock.hpp"
#include "rheo/schedule/interleaved_order.hpp"
#include "rheo/schedule/placement.hpp"
#include "rheo/schedule/row_builder.hpp"
#include "rheo/schedule/schedule.hpp"

namespace rheo::inline v0 {

struct interleaved {
    static constexpr std::string_view name = "interleaved";
    static constexpr std::string_view source = "Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, SC 2021, section 2.2";

    static constexpr schedule_options takes{.chunks = true, .group = true};

    /// `cyclic` for a group that is neither p <= g <= m with m mod g = 0 or >= p, nor found acyclic. Cost: for other groups, the check.
    static constexpr shape_fault fault(schedule_shape shape)
    {
        bool const good = detail::is_known_group(shape) || dependencies_in_order(order(shape)).ok;
        return good ? shape_fault::none : shape_fault::cyclic;
    }

    /// The compute program of a whole step. @pre fault_of says none
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<interleaved>(shape);
        return order(shape);
    }

    /// The same order whether or not it is acyclic. @pre ranks >= 1, microbatches >= 0
    static constexpr rheo::program order(schedule_shape shape)
    {
        auto const chunks = detail::chunks_of(shape);
        auto const group = detail::group_of(shape);
        auto result = detail::placed_program(shape.ranks, loop_placement(shape.ranks, chunks));
        auto const items = detail::grouped(chunks, shape.microbatches, group);
        for (int rank = 0; rank < shape.ranks; ++rank) {
            auto const ahead = std::min(items.size(), static_cast<std::size_t>(2 * (shape.ranks - 1 - rank) + (chunks - 1) * group));
            for (std::size_t k = 0; k < items.size() + ahead; ++k) {
                if (k < items.size()) {
                    auto const f = items[k];
                    detail::add(result, stage_id{f.chunk * shape.ranks + rank}, instruction_kind::forward, f.microbatch);
                }
                if (k >= ahead) {
                    auto const b = items[k - ahead];
                    auto const stage = stage_id{(chunks - 1 - b.chunk) * shape.ranks + rank};
                    detail::add(result, stage, instruction_kind::backward, b.microbatch);
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

    friend constexpr bool operator==(interleaved, interleaved) = default;
};

}  // namespace rheo::inline v0
