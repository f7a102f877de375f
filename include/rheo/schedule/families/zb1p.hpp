#pragma once
// SPDX-License-Identifier: Apache-2.0

// Interleaved zero bubble (PyTorch's ScheduleInterleavedZeroBubble, after Qi et al., ICLR 2024): interleaved 1F1B with the
// backward split. Rank r runs p - 1 - r + (v - 1) g forwards ahead, half as many steps apart as 1F1B, since an input
// gradient alone takes half of a backward; weight gradients stay r behind.

#include <string_view>

#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/families/alternate_1f1b.hpp"
#include "rheo/schedule/families/interleaved_order.hpp"

namespace rheo::inline v0 {

struct zb1p {
    static constexpr std::string_view name = "zb1p";
    static constexpr std::string_view source = "PyTorch, torch/distributed/pipelining/schedules.py, ScheduleInterleavedZeroBubble; after Qi et al., ICLR 2024";

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
        detail::expect_possible<zb1p>(shape);
        return order(shape);
    }

    /// The same order whether or not it is acyclic. @pre ranks >= 1, microbatches >= 0
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program order(schedule_shape shape)
    {
        return detail::alternate_1f1b(detail::with_groups(shape), {.forwards = 1, .deferred_weights = 1, .split = true});
    }

    friend constexpr bool operator==(zb1p, zb1p) = default;
};

}  // namespace rheo::inline v0
