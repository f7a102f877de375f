#pragma once
// SPDX-License-Identifier: Apache-2.0

// Chimera (Li and Hoefler, SC 2021, section 3.1): two pipelines in opposite directions over the same ranks, each with a copy of
// the model and every other microbatch. What is written here is the order of the slots at f = b, where the two fit together
// without collisions. For m > p the paper puts units of p one after the other, which leaves bubbles between them unless f = b;
// here the unit grows instead: p - 2 slots of bubble at any m >= p, for activations of up to m microbatches.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rheo/schedule/placement.hpp"
#include "rheo/schedule/row_builder.hpp"
#include "rheo/schedule/schedule.hpp"

namespace rheo::inline v0 {

struct chimera {
    static constexpr std::string_view name = "chimera";
    static constexpr std::string_view source = "Li and Hoefler, Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional Pipelines, SC 2021, section 3";


    /// Two directions need an even number of ranks, and of microbatches.
    static constexpr shape_fault fault(schedule_shape shape)
    {
        if (shape.ranks % 2 != 0) {
            return shape_fault::odd_ranks;
        }
        return shape.microbatches % 2 != 0 ? shape_fault::odd_microbatches : shape_fault::none;
    }

    /// The compute program of a whole step. @pre fault_of says none
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<chimera>(shape);
        auto const p = shape.ranks;
        auto result = detail::placed_program(p, both_directions(loop_placement(p, 1), p), 2);
        auto const unit = std::max(p, shape.microbatches);
        for (int rank = 0; rank < p; ++rank) {
            std::vector<instruction> at_slot(static_cast<std::size_t>(3 * unit), {instruction_kind::overlap, 0, 0});
            for (int m = 0; m < shape.microbatches; ++m) {
                auto const place = m % 2 == 0 ? rank : p - 1 - rank;  // along the microbatch's direction
                auto const stage = static_cast<std::int16_t>(m % 2 * p + place);
                auto const begin = m / 2 * 2;
                at_slot[static_cast<std::size_t>(begin + place)] = {instruction_kind::forward, stage, m};
                at_slot[static_cast<std::size_t>(begin + unit + p - 1 - place)] = {instruction_kind::backward, stage, m};
            }
            for (auto const& i : at_slot) {
                if (is_compute(i.kind)) {
                    result.rows[static_cast<std::size_t>(rank)].push_back(i);
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

    friend constexpr bool operator==(chimera, chimera) = default;
};

}  // namespace rheo::inline v0
