#pragma once
// SPDX-License-Identifier: Apache-2.0

// Chimera (Li and Hoefler, SC 2021, section 3.1): two pipelines in opposite directions over the same ranks, each with a copy of
// the model and every other microbatch. What is written here is the order of the slots at f = b, where the two fit together
// without collisions. For m > p the paper puts units of p one after the other, which leaves bubbles between them unless f = b;
// here the unit grows instead: p - 2 slots of bubble at any m >= p, for activations of up to m microbatches.

#include <algorithm>
#include <string_view>

#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/families/two_directions.hpp"

namespace rheo::inline v0 {

struct chimera {
    static constexpr std::string_view name = "chimera";
    static constexpr std::string_view source =
        "Li and Hoefler, Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional Pipelines, SC 2021, section 3";
    static constexpr bool peaks_grow = true;

    static constexpr shape_error fault(schedule_shape shape) { return detail::two_directions_error(shape); }

    /// The compute program of a whole step. @pre error_of says none
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<chimera>(shape);
        auto const unit = std::max(shape.ranks, shape.microbatches);
        return detail::pairs_in_slots({.ranks = shape.ranks, .microbatches = shape.microbatches, .chunks = 1}, unit);
    }

    friend constexpr bool operator==(chimera, chimera) = default;
};

}  // namespace rheo::inline v0
