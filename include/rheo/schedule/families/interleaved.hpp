#pragma once
// SPDX-License-Identifier: Apache-2.0

// Interleaved 1F1B (Narayanan et al., SC 2021, section 2.2): each rank holds v chunks, stage c p + r is chunk c of rank r, and
// the fill and drain of a pipeline take one v-th of the time. Microbatches pass in groups of g (Megatron-LM's
// microbatch-group-size-per-vp-stage); rank r runs 2 (p - 1 - r) + (v - 1) g forwards ahead.

#include <string_view>

#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/families/alternate_1f1b.hpp"
#include "rheo/schedule/families/interleaved_order.hpp"

namespace rheo::inline v0 {

struct interleaved {
    static constexpr std::string_view name = "interleaved";
    static constexpr std::string_view source = "Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, SC 2021, section 2.2";

    static constexpr schedule_options takes{.chunks = true, .group = true};

    /// `cyclic` for a group that is neither p <= g <= m with m mod g = 0 or >= p, nor found acyclic. Cost: for other groups, the check.
    template <class OnlyWhenCalled = void>
    static constexpr shape_error fault(schedule_shape shape)
    {
        return detail::group_error(shape, order<>);
    }

    /// The compute program of a whole step. @pre error_of says none
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<interleaved>(shape);
        return order(shape);
    }

    /// The same order whether or not it is acyclic. @pre ranks >= 1, microbatches >= 0
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program order(schedule_shape shape)
    {
        return detail::alternate_1f1b(detail::with_groups(shape), {.forwards = 2});
    }

    friend constexpr bool operator==(interleaved, interleaved) = default;
};

}  // namespace rheo::inline v0
