#pragma once
// SPDX-License-Identifier: Apache-2.0

// The energy account of a rehearsed iteration: what each rank draws while it computes, and while it waits for others
// or for its clock. It is added up rank by rank from the clocks, not from the frontier's cost, so that the two check
// each other: their sum is sum(e_i - P_b t_i) + P_b N T.

#include <cstddef>
#include <vector>

#include "rheo/energy/clocks/round_to_clocks.hpp"
#include "rheo/energy/frontier/frontier.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What one rank does and draws in an iteration.
struct rank_energy {
    seconds busy;
    seconds waiting;
    joules computing;
    joules idle;  ///< drawn while it waits

    friend constexpr bool operator==(rank_energy, rank_energy) = default;
};

/// The account of an iteration that takes `time`, by row of the program; a later end than the plan's own is a straggler's.
/// @pre the plan was made from the network, time >= the plan's
template <class OnlyWhenCalled = void>
constexpr std::vector<rank_energy> energy_account(event_network const& network, clocked_plan const& plan, watts blocking, seconds time)
{
    expects(plan.options.size() == network.operations.size(), "an energy account needs the clock of every computation");
    expects(time >= plan.time, "an iteration takes at least as long as its plan");
    std::vector<rank_energy> ranks(static_cast<std::size_t>(network.rows));
    for (std::size_t k = 0; k < plan.options.size(); ++k) {
        auto& rank = ranks[static_cast<std::size_t>(network.operations[k].row)];
        rank.busy += plan.options[k].time;
        rank.computing += plan.options[k].energy;
    }
    for (auto& rank : ranks) {
        rank.waiting = time - rank.busy;
        rank.idle = blocking * rank.waiting;
    }
    return ranks;
}

/// All ranks together.
template <class OnlyWhenCalled = void>
constexpr joules total_energy(std::vector<rank_energy> const& ranks)
{
    joules sum{0.0};
    for (auto const& rank : ranks) {
        sum += rank.computing + rank.idle;
    }
    return sum;
}

}  // namespace rheo::inline v0
