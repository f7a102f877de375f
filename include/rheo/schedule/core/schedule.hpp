#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a schedule is: a type with a name that makes a program of compute instructions for a whole step. It decides the
// compute order and the placement; lowering, transport and cost are other policies. It may say where it
// comes from (`source`), which options it takes (`takes`), which sizes it cannot have (`fault`), and that no rank has ever
// less in flight at most with a further microbatch (`peaks_grow`). The program of a list
// of microbatches, some of which need only part of their backward, is the whole step's without what is not needed.

#include <concepts>
#include <cstddef>
#include <string_view>

#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/row_builder.hpp"
#include "rheo/schedule/core/shape_error.hpp"
#include "rheo/schedule/core/stage_work.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// The size of an undisturbed step: microbatches 0 .. microbatches-1, whole. Options that are 0 are the family's own choice.
struct schedule_shape {
    int ranks;
    int microbatches;
    int chunks = 0;  ///< stages per rank
    int group = 0;   ///< microbatches that an interleaved schedule takes through one chunk before the next
    int slices = 0;  ///< parts of a microbatch along its sequence

    friend constexpr bool operator==(schedule_shape, schedule_shape) = default;
};

/// The options that a family takes.
struct schedule_options {
    bool chunks = false;
    bool group = false;
    bool slices = false;
};

/// A schedule opts in by its `name`, the one that people write.
template <class S>
concept Schedule = requires(schedule_shape shape) {
    { S::name } -> std::convertible_to<std::string_view>;
    { S::program(shape) } -> std::same_as<program>;
};

/// Why the schedule cannot be made at this size; `none` when it can. What it says of its own is asked for
/// after what holds for all.
template <Schedule S>
constexpr shape_error error_of(schedule_shape shape)
{
    schedule_options takes;
    if constexpr (requires { S::takes; }) {
        takes = S::takes;
    }
    if (shape.ranks < 1 || shape.microbatches < 0) {
        return shape.ranks < 1 ? shape_error::ranks : shape_error::microbatches;
    }
    if (shape.chunks < 0 || shape.group < 0 || shape.slices < 0) {
        return shape_error::counts;
    }
    if (shape.chunks != 0 && !takes.chunks) {
        return shape_error::chunks_not_taken;
    }
    if (shape.group != 0 && !takes.group) {
        return shape_error::group_not_taken;
    }
    if (shape.slices != 0 && !takes.slices) {
        return shape_error::slices_not_taken;
    }
    if constexpr (requires { S::fault(shape); }) {
        return S::fault(shape);
    }
    return shape_error::none;
}

namespace detail {

/// Throws the sentence of error_of.
template <class S>
constexpr void expect_possible(schedule_shape shape)
{
    expect_none(error_of<S>(shape));
}

}  // namespace detail

/// The compute program of `work`, in its order, as a step of so many microbatches.
/// @pre error_of says none at that size; deepest within the pipeline; each microbatch once
template <Schedule S>
constexpr program program_of_work(int ranks, array_view<stage_work const> work)
{
    return detail::restricted(S::program({.ranks = ranks, .microbatches = static_cast<int>(work.size())}), work);
}

}  // namespace rheo::inline v0
