#pragma once
// SPDX-License-Identifier: Apache-2.0

// What instructions take: one row of times per stage, one time per reduction unit. Where the times come
// from (flops, a profile, a clock plan) is not this folder's business.

#include <cstddef>
#include <vector>

#include "rheo/schedule/instruction.hpp"
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
constexpr stage_costs unit_costs(int stages)
{
    return stage_costs(static_cast<std::size_t>(stages), stage_cost{{1.0}, {2.0}, {1.0}, {1.0}, {0.0}, {0.0}});
}

/// The time of a computation or a send; a receive has none of its own.
constexpr seconds cost_of(stage_costs const& costs, instruction i)
{
    auto const& c = costs[static_cast<std::size_t>(i.stage)];
    switch (i.kind) {
    case instruction_kind::forward: return c.forward;
    case instruction_kind::backward: return c.backward;
    case instruction_kind::input_gradient: return c.input_gradient;
    case instruction_kind::weight_gradient: return c.weight_gradient;
    case instruction_kind::send_activation: return c.send_activation;
    case instruction_kind::send_gradient: return c.send_gradient;
    default: return seconds{0.0};
    }
}

}  // namespace rheo::inline v0
