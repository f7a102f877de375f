#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan of a job whose members have changed, by a loss, by ranks that leave, or by ranks that wait and would help: the
// decision (pipeline/membership.hpp) with the copies and the salvage that put it into force. It is a pure function of what
// the holdings of all members, of the pipelines in force and of what all ranks know since the start.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rheo/pipeline/membership.hpp"
#include "rheo/plan/cells.hpp"
#include "rheo/recover/replan.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/tensor/mix_fields.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

struct membership_plan : recovery_plan {
    std::vector<safety_copy> safety_copies;  ///< layers that second ranks keep up to date, because one node alone holds them
    std::string message;                     ///< what can be lost now, for people

    friend bool operator==(membership_plan const&, membership_plan const&) = default;
};

/// What all ranks know about nodes and ranks that wait.
struct membership_rules {
    int node_size = 1;        ///< rank / node_size is a rank's node; a copy of a layer on another node survives the loss of the node
    int reserved_spares = 0;  ///< ranks that wait for a loss although they would make the step shorter
};

/// The nodes of ranks that are numbered through.
template <class OnlyWhenCalled = void>
std::vector<node_id> nodes_of(array_view<rank_holdings const> members, int node_size)
{
    expects(node_size >= 1, "a node has at least one rank");
    std::vector<node_id> nodes;
    for (auto const& member : members) {
        nodes.push_back(node_id{member.rank.value / node_size});
    }
    return nodes;
}

namespace detail {

/// As plan_reshard takes them. Empty where each rank is a node of its own: then no copy stays in a node.
template <class OnlyWhenCalled = void>
std::vector<node_id> nodes_by_rank(array_view<rank_holdings const> members, membership_rules rules)
{
    std::vector<node_id> nodes;
    for (std::int32_t rank = 0; rules.node_size > 1 && !members.empty() && rank <= members.back().rank.value; ++rank) {
        nodes.push_back(node_id{rank / rules.node_size});
    }
    return nodes;
}

template <class OnlyWhenCalled = void>
std::vector<rank_id> ranks_that_stay(array_view<rank_holdings const> members, array_view<rank_id const> leaving)
{
    std::vector<rank_id> staying;
    for (auto const& member : members) {
        if (std::find(leaving.begin(), leaving.end(), member.rank) == leaving.end()) {
            staying.push_back(member.rank);
        }
    }
    return staying;
}

/// Holdings in layers instead of cells. A layer counts only if the rank holds the parameters of all its shards.
template <class OnlyWhenCalled = void>
std::vector<rank_holdings> in_layers(array_view<rank_holdings const> holdings, replanning const& known)
{
    std::vector<rank_holdings> whole;
    for (auto const& holds : holdings) {
        auto const parameters = known.optimizer.shards.are_used() ? without_moments(holds.layers, grid_of(known)) : holds.layers;
        whole.push_back({holds.rank, holds.version, whole_layers(parameters, grid_of(known)), {}});
    }
    return whole;
}

/// Templates are made of layers: the decision is made in layers, and its safety copies are converted back to cells. With optimizer shards there are none:
/// moments have their keepers on different nodes.
template <class OnlyWhenCalled = void>
membership_decision decision_of(array_view<rank_holdings const> holdings, array_view<pipeline_instance const> before, array_view<rank_id const> leaving,
                                replanning const& known, membership_rules rules)
{
    bool const has_cells = known.cells_per_layer > 1;
    auto const whole = has_cells ? in_layers(holdings, known) : std::vector<rank_holdings>{};
    auto decision = decide_membership(
        {.before = before,
         .members = has_cells ? array_view<rank_holdings const>{whole} : holdings,
         .leaving = leaving,
         .ready = &known.ready,
         .tensors = has_cells ? tensor_bytes_of(by_layers(known.state, known.cells_per_layer), known.formats) : tensor_bytes_of(known.state, known.formats),
         .wanted = known.wanted,
         .nodes = nodes_of(holdings, rules.node_size),
         .devices_per_node = rules.node_size,
         .reserved_spares = rules.reserved_spares});
    if (known.optimizer.shards.are_used()) {
        decision.copies.clear();
    } else if (has_cells) {
        std::vector<safety_copy> copies;
        for (auto const& copy : decision.copies) {
            for (int shard = 0; shard < known.cells_per_layer; ++shard) {
                copies.push_back({cell_of(copy.layer, shard, known.cells_per_layer), copy.from, copy.to, {copy.size.count / known.cells_per_layer}});
            }
        }
        decision.copies = std::move(copies);
    }
    return decision;
}

/// What can be lost once the plan is in force.
template <class OnlyWhenCalled = void>
survivability survivability_after(membership_plan const& plan, array_view<rank_holdings const> holdings, replanning const& known, membership_rules rules)
{
    return survivability_of(plan.salvage.after, tensor_bytes_of(known.state, known.formats), nodes_of(holdings, rules.node_size));
}

}  // namespace detail

/// The plan with the chosen pipelines. @param chosen pipelines, or the error why there are none  @pre holdings ascend by rank
template <class OnlyWhenCalled = void>
membership_plan plan_as_chosen(array_view<rank_holdings const> holdings, replanning const& known, membership_rules rules, result<recomposition> chosen)
{
    membership_plan plan{replan(holdings, known, std::move(chosen), detail::nodes_by_rank(holdings, rules)), {}, {}};
    if (!plan.error.empty() || !plan.salvage.lost.empty()) {
        return plan;
    }
    auto const afterwards = detail::survivability_after(plan, holdings, known, rules);
    if (known.wanted.failures > 0 && afterwards.nodes == 0 && !known.optimizer.shards.are_used()) {
        plan.safety_copies = safety_copies(plan.salvage.after, tensor_bytes_of(known.state, known.formats), nodes_of(holdings, rules.node_size));
    }
    plan.message = to_string(afterwards);
    return plan;
}

/// The plan for members with these holdings. Members that leave get no place.
/// @param before the pipelines in force @pre holdings ascend by rank
template <class OnlyWhenCalled = void>
membership_plan plan_membership(array_view<rank_holdings const> holdings, array_view<pipeline_instance const> before, array_view<rank_id const> leaving,
                                replanning const& known, membership_rules rules)
{
    if (known.regroup) {
        return plan_as_chosen(holdings, known, rules, known.regroup(before, holdings, leaving));
    }
    auto decision = detail::decision_of(holdings, before, leaving, known, rules);
    membership_plan plan{replan(holdings, known, std::move(decision.next), detail::nodes_by_rank(holdings, rules)), {}, {}};
    if (plan.error.empty() && plan.salvage.lost.empty()) {
        plan.safety_copies = std::move(decision.copies);
        plan.message = known.optimizer.shards.are_used() ? to_string(detail::survivability_after(plan, holdings, known, rules)) : std::move(decision.message);
    }
    return plan;
}

/// limit_to_round with the nodes of the rules.
template <class OnlyWhenCalled = void>
void limit_to_round(membership_plan& plan, array_view<rank_holdings const> holdings, replanning const& known, in_place_memory const& memory,
                    membership_rules rules)
{
    limit_to_round(plan, holdings, known, memory, detail::nodes_by_rank(holdings, rules));
}

/// The next round of places that change in place: the pipelines in force, which some ranks do not hold all of yet.
/// @returns none if the last round was the last, or if a rank with a place is gone
template <class OnlyWhenCalled = void>
std::optional<membership_plan> plan_next_round(array_view<rank_holdings const> holdings, membership_plan const& in_force, array_view<rank_id const> leaving,
                                               replanning const& known, membership_rules rules)
{
    if (!in_force.salvage.more) {
        return std::nullopt;
    }
    auto const staying = detail::ranks_that_stay(holdings, leaving);
    auto const is_gone = [&](rank_id rank) { return !std::binary_search(staying.begin(), staying.end(), rank); };
    for (auto const& pipeline : in_force.pipelines) {
        auto const ranks = ranks_of(pipeline);
        if (std::any_of(ranks.begin(), ranks.end(), is_gone)) {
            return std::nullopt;
        }
    }
    recomposition same{
        .pipelines = in_force.pipelines, .shares = in_force.shares, .spares = in_force.spares, .degraded = in_force.degraded, .time = in_force.time};
    std::erase_if(same.spares, is_gone);
    return plan_as_chosen(holdings, known, rules, std::move(same));
}

/// True when ranks that wait would be taken in between two steps: for more pipelines, a shorter step, or copies on more nodes.
/// @param in_force the plan, as it was merged
template <class OnlyWhenCalled = void>
bool would_regroup(membership_plan const& in_force, replanning const& known, membership_rules rules)
{
    if (in_force.spares.empty() || !in_force.error.empty()) {
        return false;
    }
    auto const& members = in_force.salvage.after;
    auto const next = known.regroup ? known.regroup(in_force.pipelines, members, {}) : detail::decision_of(members, in_force.pipelines, {}, known, rules).next;
    return next && next->pipelines != in_force.pipelines && next->spares.size() < in_force.spares.size();
}

/// A tensor that a rank keeps besides the one that runs its layer.
struct kept_tensor {
    tensor_id tensor;
    rank_id from;  ///< has the reduced gradient after each step
    rank_id to;

    friend constexpr bool operator==(kept_tensor const&, kept_tensor const&) = default;
};

/// The tensors of the layers that second ranks keep, which those do not have by their places, each once.
template <class OnlyWhenCalled = void>
std::vector<kept_tensor> kept_tensors(membership_plan const& plan, replanning const& known)
{
    std::vector<kept_tensor> kept;
    for (auto const& one : plan.safety_copies) {
        for (auto const& part : whole_parts(known.state, array_view{&one.layer, 1})) {
            auto const& layers = known.state.tensors[at(part.tensor)].layers;
            bool there = false;
            for (auto const& holds : plan.salvage.after) {
                there = there || (holds.rank == one.to && detail::holds_any(holds, layers));
            }
            for (auto const& k : kept) {
                there = there || (k.to == one.to && k.tensor == part.tensor);
            }
            if (!there) {
                kept.push_back({part.tensor, one.from, one.to});
            }
        }
    }
    return kept;
}

/// The first copies of what second ranks keep.
template <class OnlyWhenCalled = void>
reshard_plan plan_first_copies(membership_plan const& plan, replanning const& known)
{
    std::vector<std::vector<layer_id>> kept;  // by member: its own layers and those that it keeps
    std::vector<rank_layers> wanted;
    for (auto const& holds : plan.salvage.after) {
        auto& layers = kept.emplace_back();
        for (auto const& one : plan.safety_copies) {
            if (one.to == holds.rank) {
                layers.push_back(one.layer);
            }
        }
        std::sort(layers.begin(), layers.end());
    }
    for (std::size_t r = 0; r < kept.size(); ++r) {
        wanted.push_back({plan.salvage.after[r].rank, kept[r]});
    }
    return plan_copies(layers_by_rank(plan.salvage.after), wanted, known);
}

/// A digest of all that members perform; equal plans have equal digests.
template <class OnlyWhenCalled = void>
state_digest digest_of(membership_plan const& p)
{
    sequence_digest sum{"membership plan"};
    auto const mix = [&](auto const&... values) { (mix_fields(sum, values), ...); };
    mix(p.pipelines, p.shares, p.spares, p.copies.transfers.size());
    for (auto const& t : p.copies.transfers) {
        mix(t.round, t.from, t.to, t.tensor, t.roles.bits, t.box.dimensions, t.size);
        for (int d = 0; d < t.box.dimensions; ++d) {
            mix(t.box[d].begin, t.box[d].end);
        }
    }
    mix(p.salvage.moves.size());
    for (auto const& move : p.salvage.moves) {
        mix(move.use, move.from, move.to, move.done.first_word, move.done.words);
    }
    mix(p.salvage.work, p.salvage.in_place, p.salvage.more, p.safety_copies.size());
    for (auto const& holds : p.salvage.after) {
        mix(holds.rank, holds.layers);
    }
    for (auto const& one : p.safety_copies) {
        mix(one.layer, one.from, one.to);
    }
    return sum.value();
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template membership_plan plan_membership<>(array_view<rank_holdings const>, array_view<pipeline_instance const>, array_view<rank_id const>,
                                                  replanning const&, membership_rules);
#endif

}  // namespace rheo::inline v0
