#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the protocol (protocol.hpp, which says why) makes of a state when an action has been answered: one function for each
// way on.

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

template <class OnlyWhenCalled = void>
constexpr rank_holdings const& holdings_of(std::vector<rank_holdings> const& all, rank_id rank)
{
    for (auto const& holds : all) {
        if (holds.rank == rank) {
            return holds;
        }
    }
    throw precondition_error{"a plan says for each member what it holds"};
}

/// Why a job ends that has this plan; nothing when it continues.
template <RecoveryPlan Plan>
constexpr std::optional<leave_reason> end_of(Plan const& plan)
{
    if (!plan.salvage.lost.empty()) {
        return leave_reason::state_lost;
    }
    return plan.error.empty() ? std::nullopt : std::optional{leave_reason::no_plan};
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
constexpr transition<Plan> end_generation(protocol_state<Plan> state, std::vector<rank_id> departed = {})
{
    state.leaving = false;
    state.next.reset();
    state.departing.clear();
    state.regroup = false;
    auto action = shrink{state.now.generation, std::move(departed)};
    return ask(std::move(state), protocol_phase::shrinking, std::move(action));
}

/// Whether this rank is among those that leave.
template <RecoveryPlan Plan>
constexpr bool departs(protocol_state<Plan> const& state)
{
    return std::find(state.departing.begin(), state.departing.end(), state.self) != state.departing.end();
}

template <RecoveryPlan Plan>
constexpr transition<Plan> leave_alone(protocol_state<Plan> state)
{
    state.reason = leave_reason::drained;
    return ask(std::move(state), protocol_phase::left, leave{leave_reason::drained, 0});
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
                auto const place =
                    std::lower_bound(after.uses.begin(), after.uses.end(), mine, [](use_holding const& a, use_holding const& b) { return a.use < b.use; });
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
    if (state.found == outcome::error || state.found == outcome::bad_data) {
        state.reason = state.found == outcome::error ? leave_reason::not_finite : leave_reason::bad_data;
        return begin_section(std::move(state), section_work::closing);
    }
    auto const action = update_state{state.found, consents};
    return ask(std::move(state), protocol_phase::updating, action);
}

template <protocol_rules Rules, RecoveryPlan Plan>
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
        if (!state.reason && state.now.step < state.last && (state.regroup || !state.departing.empty())) {
            if (!Rules.leavers_give && departs(state)) {
                return leave_alone(std::move(state));
            }
            auto action = exchange_holdings{state.now, state.holds};
            return ask(std::move(state), protocol_phase::exchanging, std::move(action));
        }
    }
    return begin_section(std::move(state), section_work::whole);
}

template <RecoveryPlan Plan>
constexpr transition<Plan> after_merge(protocol_state<Plan> state)
{
    state.next.reset();
    if (state.plan.salvage.more) {  // in place: another round
        auto action = exchange_holdings{state.now, state.holds};
        return ask(std::move(state), protocol_phase::exchanging, std::move(action));
    }
    state.regroup = false;
    if (state.departing.empty()) {
        return begin_section(std::move(state), section_work::remainder);
    }
    if (departs(state)) {
        return leave_alone(std::move(state));
    }
    auto departed = state.departing;
    return end_generation(std::move(state), std::move(departed));
}

template <RecoveryPlan Plan, class Planner>
constexpr transition<Plan> after_exchange(protocol_state<Plan> state, std::vector<rank_holdings> const& all, Planner const& planner)
{
    expects(all.size() == state.members.size(), "every member of the generation reports its holdings");
    for (auto const& holds : all) {
        expects(holds.version == state.now.step, "survivors hold one version of the state");
    }
    state.next = planner(all, std::as_const(state.plan), std::as_const(state.departing));
    if (end_of(*state.next)) {
        return vote(std::move(state), 1);
    }
    auto const action = copy_state{state.now};
    return ask(std::move(state), protocol_phase::copying, action);
}

}  // namespace detail

}  // namespace rheo::inline v0
