#pragma once
// SPDX-License-Identifier: Apache-2.0

// What instructions take: one row of times per stage, one time per reduction unit. Where the times come
// from (flops, a profile, a clock plan) is not this folder's business.

#include <cstddef>
#include <vector>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The times of one stage for one microbatch.
struct stage_cost {
    seconds forward;
    seconds backward;  ///< whole: input gradient and weight gradient
    seconds input_gradient;
    seconds weight_gradient;
    seconds send_activation;  ///< to the next stage, when that is on another rank
    seconds send_gradient;    ///< to the stage before
    seconds overlap_gain{};   ///< how much less than both a forward of this stage takes together with a backward

    friend constexpr bool operator==(stage_cost, stage_cost) = default;
};

/// The costs of one pipeline: stage -> times.
using stage_costs = std::vector<stage_cost>;

/// The costs of a product of pipelines.
struct step_cost {
    std::vector<stage_costs> pipelines;
    std::vector<seconds> reductions;  ///< unit -> from the last post to the sum; units beyond the end take no time

    friend constexpr bool operator==(step_cost const&, step_cost const&) = default;
};

/// The unit costs of the literature: f = i = w = 1, b = i + w, transfers for nothing.
template <class OnlyWhenCalled = void>
constexpr stage_costs unit_costs(int stages)
{
    return stage_costs(static_cast<std::size_t>(stages), stage_cost{{1.0}, {2.0}, {1.0}, {1.0}, {0.0}, {0.0}});
}

/// The costs of a program when a full stage, the share of one rank, takes these times for a whole microbatch: a chunk costs
/// its part of them, a slice its part again. Every transfer takes `transfer`. @pre the program has stages
template <class OnlyWhenCalled = void>
constexpr stage_costs even_costs(program const& p, stage_cost full)
{
    auto const part = static_cast<double>(p.rows.size()) / (stages_per_copy(p) * p.slices);
    stage_cost const cost{full.forward * part,  full.backward * part, full.input_gradient * part, full.weight_gradient * part,
                          full.send_activation, full.send_gradient,   full.overlap_gain * part};
    return stage_costs(p.placement.size(), cost);
}

/// The time of a computation or a send; a receive has none of its own. What is recomputed takes a forward.
constexpr seconds cost_of(stage_costs const& costs, instruction i)
{
    auto const& c = costs[static_cast<std::size_t>(i.stage)];
    switch (i.kind) {
    case instruction_kind::forward:
    case instruction_kind::recompute: return c.forward;
    case instruction_kind::backward: return c.backward;
    case instruction_kind::input_gradient: return c.input_gradient;
    case instruction_kind::weight_gradient: return c.weight_gradient;
    case instruction_kind::send_activation: return c.send_activation;
    case instruction_kind::send_gradient: return c.send_gradient;
    default: return seconds{0.0};
    }
}

}  // namespace rheo::inline v0
