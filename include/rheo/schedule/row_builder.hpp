#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the generators share: the empty program with its placement, and the two ways to append, which
// leave out a backward that nobody needs. Dropping it keeps an acyclic order acyclic: the only
// instruction that would wait for it, the backward one stage below, is dropped as well.

#include <cstddef>
#include <limits>
#include <span>

#include "rheo/schedule/program.hpp"
#include "rheo/schedule/stage_work.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::detail {

constexpr void expect_work(int stages, std::span<stage_work const> work)
{
    expects(stages <= std::numeric_limits<std::int16_t>::max(), "a program has at most 32767 stages");
    for (auto const& w : work) {
        expects(w.microbatch.value >= 0, "a microbatch counts from zero");
        expects(w.deepest.value >= 0 && w.deepest.value <= stages, "the deepest stage of a microbatch lies outside the pipeline");
    }
}

/// An empty program of one stage per rank.
constexpr program one_stage_per_rank(int ranks, std::span<stage_work const> work)
{
    expects(ranks >= 1, "a schedule needs at least one rank");
    expect_work(ranks, work);
    program result;
    for (int rank = 0; rank < ranks; ++rank) {
        result.placement.push_back(rank);
    }
    result.rows.resize(static_cast<std::size_t>(ranks));
    return result;
}

constexpr void add(program& p, stage_id stage, instruction_kind kind, microbatch_id microbatch)
{
    p.rows[static_cast<std::size_t>(p.placement[at(stage)])].push_back(make_instruction(kind, stage, microbatch));
}

constexpr void add_forward(program& p, stage_id stage, stage_work const& work)
{
    add(p, stage, instruction_kind::forward, work.microbatch);
}

constexpr void add_backward(program& p, stage_id stage, stage_work const& work)
{
    if (stage >= work.deepest) {
        add(p, stage, instruction_kind::backward, work.microbatch);
    }
}

}  // namespace rheo::inline v0::detail
