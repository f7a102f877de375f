#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a job does when its members change: ranks are lost, leave after the step (a drain), or come to wait (spares). The answer
// is a value that the members perform: pipelines, what has to be copied, what stays vulnerable, or that the job stops
// with a checkpoint. A drained rank still has its state at the step's end, so it is a source of copies and nothing is
// recomputed.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rheo/pipeline/recompose.hpp"
#include "rheo/pipeline/recompose_nodes.hpp"
#include "rheo/pipeline/repair.hpp"
#include "rheo/pipeline/survivability.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

enum class membership_action {
    resume,  ///< with the new pipelines
    stop,    ///< after a checkpoint, with exit code 75: too few ranks for a pipeline
};

struct membership_request {
    array_view<pipeline_instance const> before;  ///< the pipelines so far
    array_view<rank_holdings const> members;     ///< all that are there now, ranks that leave and ranks that wait included
    array_view<rank_id const> leaving;           ///< members that are to have no place
    template_set_value const* ready;
    array_view<tensor_bytes const> tensors;
    recomposition_request wanted;
    array_view<node_id const> nodes{};  ///< of each member; none: a node is a rank
    int devices_per_node = 1;           ///< above 1: where copies would share a node, pipelines are made of whole nodes instead
    int reserved_spares = 0;            ///< so many ranks wait for a loss, and are taken in before only as far as f + 1 pipelines need them
};

struct membership_decision {
    membership_action action;
    result<recomposition> next;       ///< of the members that stay; why there is none when the job stops
    bool replay;                      ///< something of the step is lost and redone
    survivability afterwards;         ///< of what the new pipelines hold, safety copies not counted
    std::vector<safety_copy> copies;  ///< kept up to date at every commit, while one node alone holds something
    std::string message;              ///< for people

    friend constexpr bool operator==(membership_decision const&, membership_decision const&) = default;
};

/// The layers that ranks hold when they have taken up their places, in the order of `members`.
template <class OnlyWhenCalled = void>
constexpr std::vector<rank_holdings> holdings_in(recomposition const& next, array_view<rank_holdings const> members)
{
    std::vector<rank_holdings> result;
    auto const places = places_in(next.pipelines);
    for (auto const& member : members) {
        rank_holdings holds{member.rank, member.version, {}, {}};
        for (auto const& place : places_of(places, member.rank)) {
            auto const layers = layers_in(layers_of(next.pipelines[place.pipeline], member.rank));
            holds.layers.insert(holds.layers.end(), layers.begin(), layers.end());
        }
        result.push_back(std::move(holds));
    }
    return result;
}

namespace detail {

constexpr bool contains_rank(array_view<rank_id const> list, rank_id rank)
{
    bool found = false;
    for (auto const one : list) {
        found = found || one == rank;
    }
    return found;
}

/// Whether some rank of the pipelines is no member any more.
template <class OnlyWhenCalled = void>
constexpr bool any_lost(array_view<pipeline_instance const> before, array_view<rank_holdings const> members)
{
    std::vector<rank_id> there;
    for (auto const& member : members) {
        there.push_back(member.rank);
    }
    std::sort(there.begin(), there.end());
    auto const is_lost = [&](rank_id rank) { return !std::binary_search(there.begin(), there.end(), rank); };
    auto const loses = [&](std::vector<rank_id> const& group) { return std::any_of(group.begin(), group.end(), is_lost); };
    return std::any_of(before.begin(), before.end(),
                       [&](pipeline_instance const& pipeline) { return std::any_of(pipeline.stages.begin(), pipeline.stages.end(), loses); });
}

/// The cheaper of what survives the loss of f nodes: the local repair or pipelines of whole nodes; none where neither does.
template <class OnlyWhenCalled = void>
std::optional<recomposition> surviving_nodes(membership_request const& of, array_view<rank_holdings const> staying, array_view<node_id const> nodes, bool lost)
{
    std::vector<recomposition> choices;
    auto const consider = [&](result<recomposition> choice) {
        if (choice && choice->pipelines.size() > static_cast<std::size_t>(of.wanted.failures) &&
            survivability_of(holdings_in(*choice, staying), of.tensors, nodes).nodes >= of.wanted.failures) {
            choices.push_back(*std::move(choice));
        }
    };
    if (auto local = repair_locally(of.before, staying, *of.ready, of.tensors, of.wanted, {.redo_step = lost, .reserved_spares = of.reserved_spares})) {
        consider(std::move(*local));
    }
    consider(recompose_nodes(staying, nodes, of.devices_per_node, *of.ready, of.tensors, of.wanted));
    if (choices.empty()) {
        return std::nullopt;
    }
    auto const quickest = std::min(choices.front().time, choices.back().time);
    recovery_price const price{time_to_next_loss(of.wanted.losses, static_cast<int>(staying.size())), of.wanted.losses.copy_rate, quickest, lost};
    bool const last = price(choices.back().time, choices.back().moved) < price(choices.front().time, choices.front().moved);
    return std::move(last ? choices.back() : choices.front());
}

}  // namespace detail

/// The decision at a step's boundary, or after a loss: the cheapest pipelines by the rule of recovery_price.hpp, as repair() finds them. Ranks that wait
/// replace those that are gone, and are taken in where that makes f + 1 pipelines or pays by a shorter step. Where nodes have several devices and the
/// loss of f nodes would lose state, the cheaper of the local repair and pipelines of whole nodes that survives it is taken, if one does.
/// @pre every tensor has a holder among the members, who are distinct; the pipelines before have one rank per stage
/// Cost: that of repair and recompose.
template <class OnlyWhenCalled = void>
membership_decision decide_membership(membership_request const& of)
{
    expects(of.nodes.empty() || of.nodes.size() == of.members.size(), "either every rank has a node, or none");
    std::vector<rank_holdings> staying;
    std::vector<node_id> nodes;
    for (std::size_t i = 0; i < of.members.size(); ++i) {
        if (!detail::contains_rank(of.leaving, of.members[i].rank)) {
            staying.push_back(of.members[i]);
            nodes.push_back(of.nodes.empty() ? node_id{of.members[i].rank.value} : of.nodes[i]);
        }
    }
    auto const lost = detail::any_lost(of.before, of.members);
    membership_decision decision{membership_action::resume,
                                 repair(of.before, staying, *of.ready, of.tensors, of.wanted, {.redo_step = lost, .reserved_spares = of.reserved_spares}),
                                 lost,
                                 {},
                                 {},
                                 {}};
    auto& next = decision.next;
    if (!next) {
        decision.action = membership_action::stop;
        decision.message = next.error() + "; the job writes a checkpoint and ends with exit code 75";
        return decision;
    }
    auto after = holdings_in(*next, staying);
    decision.afterwards = survivability_of(after, of.tensors, nodes);
    if (of.devices_per_node > 1 && decision.afterwards.nodes < of.wanted.failures) {
        if (auto other = detail::surviving_nodes(of, staying, nodes, lost)) {
            *next = std::move(*other);
            after = holdings_in(*next, staying);
            decision.afterwards = survivability_of(after, of.tensors, nodes);
        }
    }
    decision.message = to_string(decision.afterwards);
    if (of.wanted.failures > 0 && decision.afterwards.nodes == 0) {
        decision.copies = safety_copies(after, of.tensors, nodes);
        decision.message += decision.copies.empty() ? "" : " until its copies are made";
    }
    if (next->degraded) {
        decision.message = "fewer pipelines than f + 1 = " + std::to_string(of.wanted.failures + 1) + ": " + decision.message;
    }
    return decision;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template membership_decision decide_membership<>(membership_request const&);
#endif

}  // namespace rheo::inline v0
