#pragma once
// SPDX-License-Identifier: Apache-2.0

// Interleaved zero bubble (PyTorch's ScheduleInterleavedZeroBubble, after Qi et al., ICLR 2024): interleaved 1F1B with the
// backward split. Rank r runs p - 1 - r + (v - 1) g forwards ahead, half as many steps apart as 1F1B, since an input
// gradient alone takes half of a backward; weight gradients stay r behind.

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

struct zb1p {
    static constexpr std::string_view name = "zb1p";
    static constexpr std::string_view source = "PyTorch, torch/distributed/pipelining/schedules.py, ScheduleInterleavedZeroBubble; after Qi et al., ICLR 2024";

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
        detail::expect_possible<zb1p>(shape);
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
            auto const ahead = std::min(items.size(), static_cast<std::size_t>(shape.ranks - 1 - rank + (chunks - 1) * group));
            auto const behind = static_cast<std::size_t>(rank);
            auto const backward = [&](std::size_t k, instruction_kind kind) {
                auto const stage = stage_id{(chunks - 1 - items[k].chunk) * shape.ranks + rank};
                detail::add(result, stage, kind, items[k].microbatch);
            };
            for (std::size_t k = 0; k < items.size() + ahead + behind; ++k) {
                if (k < items.size()) {
                    auto const stage = stage_id{items[k].chunk * shape.ranks + rank};
                    detail::add(result, stage, instruction_kind::forward, items[k].microbatch);
                }
                if (k >= ahead && k < items.size() + ahead) {
                    backward(k - ahead, instruction_kind::input_gradient);
                }
                if (k >= ahead + behind) {
                    backward(k - ahead - behind, instruction_kind::weight_gradient);
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

    friend constexpr bool operator==(zb1p, zb1p) = default;
};

}  // namespace rheo::inline v0
