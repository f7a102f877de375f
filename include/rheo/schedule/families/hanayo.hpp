#pragma once
// SPDX-License-Identifier: Apache-2.0

// Hanayo (Liu et al., SC 2023, section 3.2): waves. A microbatch runs down and up the ranks w times, 2 w chunks per rank, with one
// copy of the parameters. The order of a rank follows, as there, from a rehearsal at f = 1, b = 2 per stage: a unit of up to p
// microbatches takes what is ready, backwards first; the units in a row are justified, so that one begins while the one before ends. The
// paper claims a bubble of (2 p - 2) / (3 p w + p - 1) of the step at m = p and b = 2 f: what is here has no more stages'
// forwards of bubble wherever p divides m (looked at: p to 10, w to 4, m to 4 p), though more than the bound, (p - 1) (f + b) / 2 w.
// A rank holds p stages' activations at m = p, up to 1.75 p beyond.

#include <algorithm>
#include <string_view>

#include "rheo/schedule/core/placement.hpp"
#include "rheo/schedule/core/row_builder.hpp"
#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/families/interleaved_order.hpp"
#include "rheo/schedule/search/list_schedule.hpp"
#include "rheo/schedule/transform/justify.hpp"

namespace rheo::inline v0 {

struct hanayo {
    static constexpr std::string_view name = "hanayo";
    static constexpr std::string_view source = "Liu et al., Hanayo: Harnessing Wave-like Pipeline Parallelism, SC 2023, section 3";

    static constexpr schedule_options takes{.chunks = true};

    /// A wave is two chunks.
    static constexpr shape_error fault(schedule_shape shape) { return shape.chunks % 2 != 0 ? shape_error::odd_chunks : shape_error::none; }

    /// The compute program of a whole step. @pre error_of says none
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<hanayo>(shape);
        auto const chunks = detail::chunks_of(shape, 4);
        auto const placement = v_placement(shape.ranks, chunks);
        auto const held = std::max(2, shape.ranks);
        auto const costs = unit_costs(shape.ranks * chunks);
        auto const units = detail::in_units(shape.microbatches, shape.ranks, [&](int count) {
            return list_schedule({.ranks = shape.ranks, .placement = placement, .costs = costs, .microbatches = count, .cap = bytes{held * chunks}})->program;
        });
        return justified(units, costs);
    }

    friend constexpr bool operator==(hanayo, hanayo) = default;
};

}  // namespace rheo::inline v0
