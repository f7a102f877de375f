#pragma once
// SPDX-License-Identifier: Apache-2.0

// Any schedule on a grid of sequence slices: each computation of a microbatch becomes that of its slices one after the other,
// up for forwards and down for backwards. The grid is part of the numerics, so this is how other families get the bits of
// those that cut sequences by themselves (Seq1F1B), which are asked for the slices of the grid.

#include <cstddef>

#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// The compute program with every item cut into `slices`; one that is cut so already stays. An overlapped pair becomes as many
/// pairs, forwards going up while backwards go down. @pre the program only computes, slices >= 1, and p.slices is 1 or `slices`
template <class OnlyWhenCalled = void>
constexpr program with_slices(program const& p, int slices)
{
    expects(slices >= 1 && (p.slices == 1 || p.slices == slices), "a program is cut into the slices that the microbatches have");
    if (p.slices == slices) {
        return p;
    }
    auto result = empty_like(p);
    result.slices = slices;
    auto const up = [&](instruction i, int k) { return instruction{i.kind, i.stage, i.item * slices + k}; };
    auto const down = [&](instruction i, int k) { return up(i, slices - 1 - k); };
    for (std::size_t r = 0; r < p.rows.size(); ++r) {
        auto const& row = p.rows[r];
        for (std::size_t at = 0; at < row.size(); ++at) {
            bool const paired = row[at].kind == instruction_kind::overlap;
            expects(paired ? at + 2 < row.size() : is_compute(row[at].kind), "slices are cut before transfers are put in");
            for (int k = 0; k < slices; ++k) {
                if (paired) {
                    result.rows[r].push_back(up(row[at], k));
                    result.rows[r].push_back(up(row[at + 1], k));
                    result.rows[r].push_back(down(row[at + 2], k));
                } else {
                    result.rows[r].push_back(row[at].kind == instruction_kind::forward ? up(row[at], k) : down(row[at], k));
                }
            }
            at += paired ? 2 : 0;
        }
    }
    return result;
}

/// True when the family cuts sequences by itself; one that is written for a fixed number of microbatches does not.
constexpr bool cuts_sequences(any_schedule schedule)
{
    return schedule->microbatches == 0 && error_of(schedule, {.ranks = 1, .microbatches = 1, .slices = 2}) != shape_error::slices_not_taken;
}

/// The shape in which the family is asked for on a grid of so many slices: it gets them when it cuts sequences by itself. 0: its own choice. @pre slices >= 0
constexpr schedule_shape on_slices(any_schedule schedule, schedule_shape shape, int slices)
{
    expects(slices >= 0, "a program is cut into the slices that the microbatches have");
    shape.slices = cuts_sequences(schedule) ? slices : shape.slices;
    return shape;
}

}  // namespace rheo::inline v0
