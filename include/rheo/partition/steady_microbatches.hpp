#pragma once
// SPDX-License-Identifier: Apache-2.0

// How many microbatches tell everything of a step of any more. A pipeline fills, runs in a steady rhythm, and drains: beyond some microbatches a rank
// a further one adds the slowest stage's time and holds nothing more. So cuts and memory of a step of thousands are found on a step of some.

#include <algorithm>
#include <vector>

#include "rheo/schedule/check/activations.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/transform/slices.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The microbatches of a rank from which on a step is steady, and of a step, where that is more. At eight a rank, filling and draining take about a
/// ninth of a step of 1F1B.
inline constexpr int steady_microbatches_of_a_rank = 8;
inline constexpr int fewest_steady_microbatches = 64;

namespace detail {

/// What ranks hold at most, everything that is kept for the backward of an item counted as one.
template <class OnlyWhenCalled = void>
constexpr std::vector<bytes> most_held(program const& p)
{
    return peak_bytes_by_rank(p, std::vector<held_bytes>(p.placement.size(), held_bytes{bytes{1}, bytes{1}, bytes{1}}));
}

}  // namespace detail

/// The fewest microbatches of a steady step that the schedule can have and whose ranks hold as much as those of twice as many; `microbatches` where that is
/// fewer, where there are none such (GPipe holds all of a step), and where a further microbatch may lower what is in flight (peaks_grow).
/// @pre ranks >= 1, microbatches >= 1  @param slices of sequences, for families that cut them; 0: their own choice
/// Cost: that of two programs, of no more than 24 microbatches a rank or 192.
template <class OnlyWhenCalled = void>
constexpr int steady_microbatches(any_schedule const& schedule, int ranks, int microbatches, int slices = 0)
{
    expects(ranks >= 1 && microbatches >= 1, "a step has ranks and microbatches");
    auto const shape_of = [&](int m) { return on_slices(schedule, {.ranks = ranks, .microbatches = m}, slices); };
    auto const possible = [&](int m) { return error_of(schedule, shape_of(m)) == shape_error::none; };
    auto const least = std::max(fewest_steady_microbatches, steady_microbatches_of_a_rank * ranks);
    for (int m = least; schedule->peaks_grow && m < microbatches && m < least + least / 2; ++m) {
        if (possible(m) && possible(2 * m)) {
            auto const held = detail::most_held(make_program(schedule, shape_of(m)));
            return held == detail::most_held(make_program(schedule, shape_of(2 * m))) ? m : microbatches;
        }
    }
    return microbatches;
}

}  // namespace rheo::inline v0
