#pragma once
// SPDX-License-Identifier: Apache-2.0

// The protocol of steps, commits and losses of one rank, as a pure function: state and event in, state
// and action out. The executor performs actions and knows no rules; the simulator and the exploration
// in tests/unit/rheo/recover perform the same actions on a model of the MPI.
//
//   start, shrunk -> link -> exchange -> copy -> decide -> merge -> section -> decide -> update -> section ...
//   peer lost in exchange, copy, section  -> revoke -> decide(0)      any decide not settled -> shrink
//   a rank wants to leave, or waits: update -> exchange -> copy -> decide -> merge -> section, or shrink without those that leave
//
// Why calls match on all ranks. The collective calls on the recovery communicator R of a generation are
// decide and shrink (with what an MPI needs inside it), and MPI matches them by order. A round is a section, or an exchange and a copy; round 0
// of a generation is an exchange and a copy, and what each further round is follows from the settled ones before it alone. In each round a rank makes exactly one decide: at the end
// with vote 1, or, when it loses a peer, at once with vote 0. The return code is the same at all
// survivors, and with success so is the value; so in each round all survivors find it settled, or all do not. If
// settled, all go to the next round; else all call shrink next. By induction the n-th call on
// R is the same round's decide, or the one shrink, at every rank that lives to make it. Those that leave make no further call, and all
// others make the shrink after the same merge. The new
// communicator begins again with round 0, its membership is the same at all its members, and a loss
// during recovery is nothing special: round 0 was not settled.
//
// Why no rank commits alone. Settled means that every member voted 1 (success: no vote is missing), so
// each had finished its section and read the same reduced flags. A member that dies after its vote is
// missed by no rank in this round; the next one finds it dead. Updates and merges use no peer, hence cannot fail, and
// precede any later call: survivors in a recovery have one version and books of one merge.
//
// Why every wait ends. A rank waits in section, exchange or copy for a peer. The peer continues, or dies,
// which ends the wait, or leaves early, and then it has revoked R and D before its decide, which
// ends the wait. Decide and shrink wait only for living members, which by the above arrive there.
//
// Why books are right. Accumulators count for exactly one rank. They change when an operation is
// complete (`contributed`), when a merge follows a settled round 0 (then all transfers are complete;
// sender and receiver change their books in the same round, and a receiver that dies takes along
// what is then missing and recomputed), or when an attempt ends at all ranks. Copied layers change no book
// but "is here", which is true as soon as it is complete; so a layer outlives its last old holder even if the round fails.
//
// Why two halves of a cut network do not both continue. Every membership, without a gap, links the file
// named after the generation it ends before it does anything else; one can. The halves end the same
// generation. A commit that one half saw and the other did not is harmless: the winner repeats the step from the
// same state to the same bits. At start the last begun generation must be read once and sent to all
// ranks (a rank that looked later would see its own launch's file).
//
// Why a rank can leave and nothing is lost. It takes part in the round in which others take its layers over, and leaves when
// that round is settled: then all that it held has arrived. Between two steps accumulators are empty, so nothing is recomputed. A
// round that is not settled leaves it a member, and its request comes again with the next section.
//
// For the executor: a loss per microbatch is a sum over microbatches as gradients are, so give it a use
// of its own in the last layer, and it is salvaged and recomputed like them.

#include <algorithm>
#include <utility>
#include <variant>

#include "rheo/recover/detail/transitions.hpp"
#include "rheo/recover/event.hpp"
#include "rheo/recover/rules.hpp"
#include "rheo/recover/state.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// Where a rank begins. A start is the end of a recovery without a past: all ranks link, exchange what they can
/// restore (of a checkpoint or of the seed: typically each layer), and the planner makes the first plan.
struct protocol_start {
    launch_id launch;
    generation_id ended;           ///< the last one begun in the run folder, agreed: the same at all ranks
    step_id last;                  ///< the job ends when this many steps are committed
    std::vector<rank_id> members;  ///< ascending
    rank_holdings holds;           ///< of this rank; `version` is where the job continues, agreed: it is in every stamp
};

/// True when a message with the stamp belongs to the section that this rank is in; its sender and kind are looked at elsewhere.
template <protocol_rules Rules = protocol_rules{}, RecoveryPlan Plan>
constexpr bool accepts(protocol_state<Plan> const& state, message_stamp stamp)
{
    return !Rules.stamps_count || stamp == state.now;
}

/// The first state and action of a rank.
/// @pre members ascend and contain the rank; holds.version <= last
template <RecoveryPlan Plan>
constexpr transition<Plan> start_protocol(protocol_start from)
{
    expects(from.holds.version <= from.last, "the state to resume from is not beyond the last step");
    protocol_state<Plan> state;
    state.self = from.holds.rank;
    state.launch = from.launch;
    state.now = {from.ended, from.holds.version, {}};
    state.last = from.last;
    state.holds = std::move(from.holds);
    return detail::begin_generation(std::move(state), std::move(from.members));
}

/// Books the contributions of a complete operation: a microbatch to these uses, which ascend. Cost: one pass over the uses that the rank holds.
/// @pre a section runs; the rank holds the uses; the microbatch is in none of them yet
template <RecoveryPlan Plan>
constexpr void note(protocol_state<Plan>& state, array_view<use_id const> uses, microbatch_id microbatch)
{
    expects(state.phase == protocol_phase::section && state.work != section_work::closing, "contributions are made in a section");
    auto const end = state.holds.uses.end();
    auto place =
        uses.empty() ? end : std::lower_bound(state.holds.uses.begin(), end, uses.front(), [](use_holding const& held, use_id use) { return held.use < use; });
    for (auto const use : uses) {
        while (place != end && place->use < use) {
            ++place;
        }
        expects(place != end && place->use == use, "a rank contributes to uses that it holds");
        expects(!place->done.contains(microbatch), "a microbatch contributes once to a use");
        place->done.insert(microbatch);
    }
}

/// The same of one use.
template <RecoveryPlan Plan>
constexpr void note(protocol_state<Plan>& state, contributed contribution)
{
    note(state, array_view{&contribution.use, 1}, contribution.microbatch);
}

/// Books a copied layer. @pre a recovery copies, or a section, whose committed state it belongs to
template <protocol_rules Rules = protocol_rules{}, RecoveryPlan Plan>
constexpr void note(protocol_state<Plan>& state, received copy)
{
    expects(state.phase == protocol_phase::copying || (state.phase == protocol_phase::section && state.work != section_work::closing),
            "layers are received in a recovery or a section");
    if (!Rules.copies_are_kept || detail::contains(state.holds.layers, copy.layer)) {
        return;
    }
    auto place = state.holds.layers.begin();
    while (place != state.holds.layers.end() && *place < copy.layer) {
        ++place;
    }
    state.holds.layers.insert(place, copy.layer);
}

/// True when the running section has to add the contribution of a microbatch to a use.
/// @pre a section runs that is not closing
template <RecoveryPlan Plan>
constexpr bool wanted(protocol_state<Plan> const& state, use_id use, microbatch_id microbatch)
{
    return state.work == section_work::whole || misses(state.plan.salvage, use, microbatch);
}

/// The step of the protocol: the answer to the action that is out, and what to do next.
/// @pre the event is an answer to that action, and the rank has not left
/// @throws precondition_error when it is not, or when members hold different versions
template <protocol_rules Rules = protocol_rules{}, RecoveryPlan Plan, RecoveryPlanner<Plan> Planner>
constexpr transition<Plan> advance(protocol_state<Plan> state, protocol_event const& event, Planner const& planner)
{
    using phase = protocol_phase;
    auto const is = [&](phase expected) { return state.phase == expected; };
    if (std::holds_alternative<peer_lost>(event) && (is(phase::section) || is(phase::exchanging) || is(phase::copying))) {
        return detail::leave_early<Rules>(std::move(state));
    }
    if (auto const* finished = std::get_if<section_finished>(&event); finished != nullptr && is(phase::section)) {
        expects((finished->consents & 1U) == 0, "bit 0 of a vote is not a consent");
        state.found = finished->found;
        state.departing = finished->departing;
        state.regroup = finished->regroup;
        return detail::vote(std::move(state), 1U | finished->consents);
    }
    if (std::holds_alternative<revoked>(event) && is(phase::revoking)) {
        return detail::vote(std::move(state), Rules.one_decide ? 0 : 1);
    }
    if (auto const* answer = std::get_if<decided>(&event); answer != nullptr && is(phase::deciding)) {
        return detail::after_decide<Rules>(std::move(state), *answer);
    }
    if (auto const* answer = std::get_if<shrunk>(&event); answer != nullptr && is(phase::shrinking)) {
        return detail::begin_generation(std::move(state), answer->members);
    }
    if (std::holds_alternative<linked>(event) && is(phase::linking)) {
        auto action = exchange_holdings{state.now, state.holds};
        return detail::ask(std::move(state), phase::exchanging, std::move(action));
    }
    if (std::holds_alternative<fenced>(event) && is(phase::linking)) {
        return detail::ask(std::move(state), phase::left, leave{leave_reason::fenced, 0});
    }
    if (auto const* answer = std::get_if<holdings_exchanged>(&event); answer != nullptr && is(phase::exchanging)) {
        return detail::after_exchange(std::move(state), answer->all, planner);
    }
    if (std::holds_alternative<copied>(event) && is(phase::copying)) {
        if (!Rules.decide_then_merge) {
            detail::take_over<Rules>(state);
        }
        if (!Rules.leavers_vote && detail::departs(state)) {
            return detail::leave_alone(std::move(state));
        }
        return detail::vote(std::move(state), 1);
    }
    if (std::holds_alternative<merged>(event) && is(phase::merging)) {
        detail::take_over<Rules>(state);
        return detail::after_merge(std::move(state));
    }
    if (std::holds_alternative<updated>(event) && is(phase::updating)) {
        return detail::after_update<Rules>(std::move(state));
    }
    throw precondition_error{"an event answers the action that is out"};
}

}  // namespace rheo::inline v0
