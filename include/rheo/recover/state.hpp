#pragma once
// SPDX-License-Identifier: Apache-2.0

// The state of the protocol at one rank: which action is out, where the job stands, and what this rank
// answers for. It holds the books (which microbatch is in which accumulator, which layer is here), not
// the tensors. The plan is a parameter: anything that carries a salvage plan.

#include <concepts>
#include <cstdint>
#include <optional>
#include <vector>

#include "rheo/recover/action.hpp"
#include "rheo/recover/salvage_plan.hpp"
#include "rheo/topology/holdings.hpp"

namespace rheo::inline v0 {

/// A plan for the members of a generation: who holds what and does which work, salvage included; or the
/// reason why there is none: `salvage.lost` names layers without a copy, `cannot` says it otherwise.
template <class P>
concept RecoveryPlan = std::copyable<P> && std::default_initializable<P> && requires(P const& plan) {
    { plan.salvage } -> std::convertible_to<salvage_plan const&>;
    { plan.error.empty() } -> std::convertible_to<bool>;
};

/// A pure function to a plan, from the holdings of all members, the plan in force (the default one at the start) and the members that are to
/// have no place. All members have the same plan in force: it came into force in a round that was settled, for all of them.
template <class F, class P>
concept RecoveryPlanner = requires(F const& planner, std::vector<rank_holdings> const& holdings, P const& in_force, std::vector<rank_id> const& departing) {
    { planner(holdings, in_force, departing) } -> std::convertible_to<P>;
};

/// Which action is out: the events that may come are those of this action.
enum class protocol_phase : std::uint8_t { section, revoking, deciding, shrinking, linking, exchanging, copying, merging, updating, left };

template <RecoveryPlan Plan>
struct protocol_state {
    protocol_phase phase = protocol_phase::linking;
    rank_id self;
    launch_id launch{};
    message_stamp now;               ///< step = number of committed steps; on every message
    step_id last;                    ///< the job ends when this many steps are committed
    std::vector<rank_id> members;    ///< of the generation, ascending
    rank_holdings holds;             ///< layers and accumulators that this rank answers for
    Plan plan;                       ///< in force
    std::optional<Plan> next;        ///< in a recovery, from the exchange to the merge: the plan that is to come into force
    std::vector<rank_id> departing;  ///< members that leave: named by the section, then until the generation ends
    bool regroup = false;            ///< named by the section: places are reassigned after the step
    section_work work = section_work::whole;
    outcome found = outcome::commit;     ///< of my finished section
    bool leaving = false;                ///< this rank has left the generation early: its vote is 0
    std::optional<leave_reason> reason;  ///< set: the job is closing

    friend constexpr bool operator==(protocol_state const&, protocol_state const&) = default;
};

}  // namespace rheo::inline v0
