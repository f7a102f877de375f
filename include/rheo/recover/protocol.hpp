#pragma once
// SPDX-License-Identifier: Apache-2.0

// The protocol of steps, commits and losses of one rank, as a pure function: state and event in, state
// and action out. The executor performs actions and knows no rules; the simulator and the exploration
// in tests/recover perform the same actions on a model of the MPI.
//
//   start, shrunk -> link -> tell -> copy -> decide -> merge -> section -> decide -> update -> section ...
//   peer lost in tell, copy, section  -> revoke -> decide(0)      any decide not settled -> shrink
//
// Why calls match on all ranks. The collective calls on the recovery communicator R of a generation are
// decide and shrink (with what an MPI needs inside it), and MPI matches them by order. Call "round 0" the tell and copy that begin a
// generation, and "round k" its k-th section. In each round a rank makes exactly one decide: at the end
// with vote 1, or, when it loses a peer, at once with vote 0. The return code is the same at all
// survivors, and with success so is the value; so in each round all survivors find it settled, or all do not. If
// settled, all go to the next round; else all call shrink next. By induction the n-th call on
// R is the same round's decide, or the one shrink, at every rank that lives to make it. The new
// communicator begins again with round 0, its membership is the same at all its members, and a loss
// during recovery is nothing special: round 0 was not settled.
//
// Why nobody commits alone. Settled means that every member voted 1 (success: no vote is missing), so
// each had finished its section and read the same reduced flags. A member that dies after its vote is
// missed by nobody in this round; the next one finds it dead. Updates and merges use no peer, hence cannot fail, and
// precede any later call: survivors in a recovery have one version and books of one merge.
//
// Why every wait ends. A rank waits in section, tell or copy for a peer. The peer goes on, or dies,
// which ends the wait, or leaves early, and then it has revoked R and D before its decide, which
// ends the wait. Decide and shrink wait only for living members, which by the above arrive there.
//
// Why books are right. Accumulators count for exactly one rank. They change when an operation is
// complete (`contributed`), when a merge follows a settled round 0 (then all transfers are complete;
// sender and receiver change their books in the same round, and a receiver that dies takes along
// what is then missing and made again), or when an attempt ends at all ranks. Copied layers change no book
// but "is here", which is true as soon as it is complete; so a layer outlives its last old holder even if the round fails.
//
// Why two halves of a cut network do not both go on. Every membership, without a gap, links the file
// named after the generation it ends before it does anything else; one can. The halves end the same
// generation. A commit that one half saw and the other did not is harmless: the winner repeats the step from the
// same state to the same bits. At start the last begun generation must be read once and told to all
// ranks (a rank that looked later would see its own launch's file).
//
// For the executor: a loss per microbatch is a sum over microbatches as gradients are, so give it a use
// of its own in the last layer, and it is salvaged and made again like them.

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "rheo/recover/event.hpp"
#include "rheo/recover/rules.hpp"
#include "rheo/recover/state.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// The new state and what to do next.
template <RecoveryPlan Plan>
struct transition {
    protocol_state<Plan> state;
    protocol_action action;
};

/// Where a rank begins. A start is the end of a recovery without a past: all ranks link, tell what they can
/// restore (of a checkpoint or of the seed: typically each layer), and the planner makes the first plan.
struct protocol_start {
    launch_id launch;
    generation_id ended;           ///< the last one begun in the run folder, agreed: the same at all ranks
    step_id last;                  ///< the job ends when this many steps are committed
    std::vector<rank_id> members;  ///< ascending
    rank_holdings holds;           ///< of this rank; `version` is where the job goes on, agreed: it is in every stamp
};

/// True when a message with the stamp is one that this rank waits for now, as far as the stamp says.
template <protocol_rules Rules = protocol_rules{}, RecoveryPlan Plan>
constexpr bool accepts(protocol_state<Plan> const& state, message_stamp stamp)
{
    return !Rules.stamps_count || stamp == state.now;
}

namespace detail {

constexpr bool contains(std::vector<layer_id> const& layers, layer_id layer)
{
    for (auto const l : layers) {
        if (l == layer) {
            return true;
        }
    }
    return false;
}

constexpr rank_holdings const& holdings_of(std::vector<rank_holdings> const& all, rank_id rank)
{
    for (auto const& holds : all) {
        if (holds.rank == rank) {
            return holds;
        }
    }
    throw precondition_error{"a plan says for each member what it holds"};
}

/// Why a job ends that has this plan; nothing when it goes on.
template <RecoveryPlan Plan>
constexpr std::optional<leave_reason> end_of(Plan const& plan)
{
    if (!plan.salvage.lost.empty()) {
        return leave_reason::state_lost;
    }
    return plan.cannot.empty() ? std::nullopt : std::optional{leave_reason::no_plan};
}

template <RecoveryPlan Plan>
constexpr transition<Plan> ask(protocol_state<Plan> state, protocol_phase phase, protocol_action action)
{
    state.phase = phase;
    return {std::move(state), std::move(action)};
}

template <RecoveryPlan Plan>
constexpr transition<Plan> begin_section(protocol_state<Plan> state, section_work work)
{
    if (!state.reason && state.now.step >= state.last) {
        state.reason = leave_reason::finished;
    }
    state.work = state.reason ? section_work::closing : work;
    auto const action = run_section{state.now, state.work};
    return ask(std::move(state), protocol_phase::section, action);
}

/// The one place where the agreement is called.
template <RecoveryPlan Plan>
constexpr transition<Plan> vote(protocol_state<Plan> state, std::uint32_t bits)
{
    return ask(std::move(state), protocol_phase::deciding, decide{bits});
}

template <protocol_rules Rules, RecoveryPlan Plan>
constexpr transition<Plan> leave_early(protocol_state<Plan> state)
{
    state.leaving = true;
    if (!Rules.leaving_revokes) {
        return vote(std::move(state), 0);
    }
    auto const action = revoke_generation{state.now.generation};
    return ask(std::move(state), protocol_phase::revoking, action);
}

template <RecoveryPlan Plan>
constexpr transition<Plan> end_generation(protocol_state<Plan> state)
{
    state.leaving = false;
    state.next.reset();
    auto const action = shrink{state.now.generation};
    return ask(std::move(state), protocol_phase::shrinking, action);
}

template <RecoveryPlan Plan>
constexpr transition<Plan> begin_generation(protocol_state<Plan> state, std::vector<rank_id> members)
{
    auto const ended = state.now.generation;
    ++state.now.generation;
    state.members = std::move(members);
    auto action = link_generation{state.launch, ended, state.members};
    return ask(std::move(state), protocol_phase::linking, std::move(action));
}

/// The books after a merge.
template <protocol_rules Rules, RecoveryPlan Plan>
constexpr void take_over(protocol_state<Plan>& state)
{
    auto after = holdings_of(state.next->salvage.after, state.self);
    if (!Rules.senders_clear) {
        for (auto const& mine : state.holds.uses) {
            bool still = false;
            for (auto& use : after.uses) {
                if (use.use == mine.use) {
                    use.done = use.done | mine.done;
                    still = true;
                }
            }
            if (!still) {
                auto const place = std::lower_bound(after.uses.begin(), after.uses.end(), mine,
                                                    [](use_holding const& a, use_holding const& b) { return a.use < b.use; });
                after.uses.insert(place, mine);
            }
        }
    }
    state.holds = std::move(after);
    state.plan = *state.next;
}

template <RecoveryPlan Plan>
constexpr void clear_accumulators(protocol_state<Plan>& state)
{
    for (auto& use : state.holds.uses) {
        use.done.clear();
    }
}

template <protocol_rules Rules, RecoveryPlan Plan>
constexpr transition<Plan> after_decide(protocol_state<Plan> state, decided answer)
{
    bool const settled = (answer.success || !Rules.success_counts) && (answer.bits & 1U) != 0;
    if (!Rules.one_decide && (state.leaving || !settled)) {
        return state.leaving ? end_generation(std::move(state)) : leave_early<Rules>(std::move(state));
    }
    if (!settled) {
        return end_generation(std::move(state));
    }
    if (state.next) {
        if (auto const end = end_of(*state.next)) {
            state.plan = *std::exchange(state.next, std::nullopt);
            state.reason = end;
            return begin_section(std::move(state), section_work::closing);
        }
        if (!Rules.decide_then_merge) {
            state.next.reset();
            return begin_section(std::move(state), section_work::remainder);
        }
        return ask(std::move(state), protocol_phase::merging, merge_staging{});
    }
    auto const consents = answer.bits & ~1U;
    if (state.work == section_work::closing) {
        auto const action = leave{*state.reason, consents};
        return ask(std::move(state), protocol_phase::left, action);
    }
    if (state.found == outcome::error) {
        state.reason = leave_reason::not_finite;
        return begin_section(std::move(state), section_work::closing);
    }
    auto const action = update_state{state.found, consents};
    return ask(std::move(state), protocol_phase::updating, action);
}

template <RecoveryPlan Plan>
constexpr transition<Plan> after_update(protocol_state<Plan> state)
{
    clear_accumulators(state);
    if (state.found == outcome::redo) {
        ++state.now.attempt;
    } else {
        ++state.now.step;
        state.now.attempt = {};
        state.holds.version = state.now.step;
        if (state.found == outcome::stop && state.now.step < state.last) {
            state.reason = leave_reason::stopped;
        }
    }
    return begin_section(std::move(state), section_work::whole);
}

template <RecoveryPlan Plan, class Planner>
constexpr transition<Plan> after_told(protocol_state<Plan> state, std::vector<rank_holdings> const& all, Planner const& planner)
{
    expects(all.size() == state.members.size(), "every member of the generation tells what it holds");
    for (auto const& holds : all) {
        expects(holds.version == state.now.step, "survivors hold one version of the state");
    }
    state.next = planner(all);
    if (end_of(*state.next)) {
        return vote(std::move(state), 1);
    }
    auto const action = copy_state{state.now};
    return ask(std::move(state), protocol_phase::copying, action);
}

}  // namespace detail

/// The first state and action of a rank.
/// @pre members ascend and contain the rank; holds.version <= last
template <RecoveryPlan Plan>
constexpr transition<Plan> start_protocol(protocol_start from)
{
    expects(from.holds.version <= from.last, "the state to go on from is not beyond the last step");
    protocol_state<Plan> state;
    state.self = from.holds.rank;
    state.launch = from.launch;
    state.now = {from.ended, from.holds.version, {}};
    state.last = from.last;
    state.holds = std::move(from.holds);
    return detail::begin_generation(std::move(state), std::move(from.members));
}

/// Books a contribution. @pre a section runs; the rank holds the use; the microbatch is not in it yet
template <RecoveryPlan Plan>
constexpr void note(protocol_state<Plan>& state, contributed what)
{
    expects(state.phase == protocol_phase::section && state.work != section_work::closing, "contributions are made in a section");
    auto& uses = state.holds.uses;
    auto const place = std::lower_bound(uses.begin(), uses.end(), what.use, [](use_holding const& held, use_id use) { return held.use < use; });
    expects(place != uses.end() && place->use == what.use, "a rank contributes to uses that it holds");
    expects(!place->done.contains(what.microbatch), "a microbatch contributes once to a use");
    place->done.insert(what.microbatch);
}

/// Books a copied layer. @pre a recovery copies
template <protocol_rules Rules = protocol_rules{}, RecoveryPlan Plan>
constexpr void note(protocol_state<Plan>& state, received what)
{
    expects(state.phase == protocol_phase::copying, "layers are received in a recovery");
    if (!Rules.copies_are_kept || detail::contains(state.holds.layers, what.layer)) {
        return;
    }
    auto place = state.holds.layers.begin();
    while (place != state.holds.layers.end() && *place < what.layer) {
        ++place;
    }
    state.holds.layers.insert(place, what.layer);
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
/// @throws precondition_error when it is not, or when members tell different versions
template <protocol_rules Rules = protocol_rules{}, RecoveryPlan Plan, RecoveryPlanner<Plan> Planner>
constexpr transition<Plan> advance(protocol_state<Plan> state, protocol_event const& event, Planner const& planner)
{
    using phase = protocol_phase;
    auto const is = [&](phase expected) { return state.phase == expected; };
    if (std::holds_alternative<peer_lost>(event) && (is(phase::section) || is(phase::telling) || is(phase::copying))) {
        return detail::leave_early<Rules>(std::move(state));
    }
    if (auto const* finished = std::get_if<section_finished>(&event); finished != nullptr && is(phase::section)) {
        expects((finished->consents & 1U) == 0, "bit 0 of a vote is not a consent");
        state.found = finished->found;
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
        auto action = tell{state.now, state.holds};
        return detail::ask(std::move(state), phase::telling, std::move(action));
    }
    if (std::holds_alternative<fenced>(event) && is(phase::linking)) {
        return detail::ask(std::move(state), phase::left, leave{leave_reason::fenced, 0});
    }
    if (auto const* answer = std::get_if<told>(&event); answer != nullptr && is(phase::telling)) {
        return detail::after_told(std::move(state), answer->all, planner);
    }
    if (std::holds_alternative<copied>(event) && is(phase::copying)) {
        if (!Rules.decide_then_merge) {
            detail::take_over<Rules>(state);
        }
        return detail::vote(std::move(state), 1);
    }
    if (std::holds_alternative<merged>(event) && is(phase::merging)) {
        detail::take_over<Rules>(state);
        state.next.reset();
        return detail::begin_section(std::move(state), section_work::remainder);
    }
    if (std::holds_alternative<updated>(event) && is(phase::updating)) {
        return detail::after_update(std::move(state));
    }
    throw precondition_error{"an event answers the action that is out"};
}

}  // namespace rheo::inline v0
