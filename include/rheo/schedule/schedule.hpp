#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a schedule is: a type with a name that makes a program of compute instructions, for a whole
// step or for a list of microbatches some of which need only part of their backward. It decides the
// compute order and the placement; lowering, transport and cost are other policies.

#include <concepts>
#include <span>
#include <string_view>

#include "rheo/schedule/program.hpp"
#include "rheo/schedule/stage_work.hpp"

namespace rheo::inline v0 {

/// The size of an undisturbed step: microbatches 0 .. microbatches-1, whole.
struct schedule_shape {
    int ranks;
    int microbatches;

    friend constexpr bool operator==(schedule_shape, schedule_shape) = default;
};

/// A schedule opts in by its `name`, the one that people write.
template <class S>
concept Schedule = requires(schedule_shape shape, int ranks, std::span<stage_work const> work) {
    { S::name } -> std::convertible_to<std::string_view>;
    { S::program(shape) } -> std::same_as<program>;
    { S::program(ranks, work) } -> std::same_as<program>;
};

}  // namespace rheo::inline v0
