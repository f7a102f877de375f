#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the generators share: the empty program with its placement, the ways to append to it, and a whole step's program cut down
// to the work that is asked for. Leaving out a backward that is not needed keeps an acyclic order acyclic: the only
// instruction that would wait for it, the backward one stage below, is left out as well.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/stage_work.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::detail {

constexpr void expect_work(int stages, array_view<stage_work const> work)
{
    expects(stages <= std::numeric_limits<std::int16_t>::max(), "a program has at most 32767 stages");
    for (auto const& w : work) {
        expects(w.microbatch.value >= 0, "a microbatch counts from zero");
        expects(w.deepest.value >= 0 && w.deepest.value <= stages, "the deepest stage of a microbatch lies outside the pipeline");
    }
}

template <class OnlyWhenCalled = void>
constexpr void add(program& p, stage_id stage, instruction_kind kind, microbatch_id microbatch)
{
    p.rows[static_cast<std::size_t>(p.placement[at(stage)])].push_back(make_instruction(kind, stage, microbatch));
}

/// An empty program on `ranks` ranks with this placement.
template <class OnlyWhenCalled = void>
constexpr program placed_program(int ranks, std::vector<int> placement, int copies = 1)
{
    expects(placement.size() <= static_cast<std::size_t>(std::numeric_limits<std::int16_t>::max()), "a program has at most 32767 stages");
    return {std::move(placement), std::vector<std::vector<instruction>>(static_cast<std::size_t>(ranks)), copies, 1};
}

/// A forward and a whole backward that are computed at once. @pre both stages live on one rank
template <class OnlyWhenCalled = void>
constexpr void add_overlapped(program& p, instruction forward, instruction backward)
{
    auto& row = p.rows[static_cast<std::size_t>(p.placement[static_cast<std::size_t>(forward.stage)])];
    row.push_back({instruction_kind::overlap, forward.stage, forward.item});
    row.push_back(forward);
    row.push_back(backward);
}

/// Units of at most so many microbatches, one after the other on every rank; `make(count)` is the program of one.
template <class Make>
constexpr program in_units(int microbatches, int unit, Make const& make)
{
    auto result = make(std::min(unit, microbatches));
    auto next = result;
    for (auto first = unit; first < microbatches; first += unit) {
        if (microbatches - first < unit) {
            next = make(microbatches - first);
        }
        for (std::size_t row = 0; row < next.rows.size(); ++row) {
            for (auto i : next.rows[row]) {
                i.item += first * next.slices;
                result.rows[row].push_back(i);
            }
        }
    }
    return result;
}

/// The schedule of a whole step turned into one of `work`, whose k-th entry takes the place of microbatch k. A backward
/// that is not needed is left out, with its overlap.
template <class OnlyWhenCalled = void>
constexpr program restricted(program p, array_view<stage_work const> work)
{
    auto const chain = stages_per_copy(p);
    expect_work(chain, work);
    auto const work_of = [&](instruction i) { return work[static_cast<std::size_t>(i.item / p.slices)]; };
    auto const dropped = [&](instruction i) { return is_compute(i.kind) && i.kind != instruction_kind::forward && i.stage % chain < work_of(i).deepest.value; };
    for (auto& row : p.rows) {
        std::vector<instruction> kept;
        for (std::size_t k = 0; k < row.size(); ++k) {
            auto i = row[k];
            if (dropped(i) || (i.kind == instruction_kind::overlap && dropped(row[k + 2]))) {
                continue;
            }
            i.item = work_of(i).microbatch.value * p.slices + i.item % p.slices;
            kept.push_back(i);
        }
        row = kept;
    }
    return p;
}

}  // namespace rheo::inline v0::detail
