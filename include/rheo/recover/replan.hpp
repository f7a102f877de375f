#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan of a recovery: from the members' holdings to new pipelines, the copies that they need and the
// salvage of the step. It is a pure function of the exchanged holdings and of what all ranks know since the
// start, so every member computes the same value and no rank has to be asked.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rheo/pipeline/recompose.hpp"
#include "rheo/recover/in_place.hpp"
#include "rheo/recover/salvage.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/reshard_plan.hpp"
#include "rheo/reshard/state_layout.hpp"
#include "rheo/reshard/tensor_bytes.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

struct recovery_plan {
    std::vector<pipeline_instance> pipelines;
    std::vector<int> shares;      ///< of a whole step's microbatches
    std::vector<rank_id> spares;  ///< members without a place
    bool degraded = false;        ///< fewer than f + 1 copies of each layer
    seconds time{};               ///< modelled, of a step; 0: not known
    reshard_plan copies;          ///< of committed state, from what the members hold to what they are to hold
    salvage_plan salvage;
    std::string error;  ///< why there are no pipelines; no result<T>, because what can be salvaged is known without them

    friend bool operator==(recovery_plan const&, recovery_plan const&) = default;
};

/// What all ranks know since the start.
struct replanning {
    collection state;              ///< of the model
    int layers;                    ///< of the model
    template_set_value ready;      ///< what pipelines can be made of single ranks; empty where ranks share stages
    recomposition_request wanted;  ///< how many to keep; microbatches of a step
    state_formats formats = committed_formats;
    std::optional<bytes> round_budget{};  ///< most bytes that a rank receives in one round
    int slices = 1;                       ///< of a microbatch, each of which contributes for itself
    int cells_per_layer = 1;              ///< above 1 state and layers are in cells (plan/cells.hpp)
    optimizer_cells optimizer{};          ///< where not all holders keep moments: then state and layers are in cells
    /// If ranks share stages: chooses the next pipelines for the members that do not leave. Empty: templates are used.
    std::function<result<recomposition>(array_view<pipeline_instance const> before, array_view<rank_holdings const> holdings,
                                        array_view<rank_id const> leaving)>
        regroup{};
};

/// Shards of a layer.
constexpr int grid_of(replanning const& known) { return known.optimizer.shards.are_used() ? known.cells_per_layer / 2 : known.cells_per_layer; }

/// Whole layers of each rank.
template <class OnlyWhenCalled = void>
std::vector<rank_layers> layers_by_rank(array_view<rank_holdings const> holdings)
{
    std::vector<rank_layers> ranks;
    for (auto const& holds : holdings) {
        ranks.push_back({holds.rank, holds.layers});
    }
    return ranks;
}

/// The copies that bring the members from what they hold to what they are to hold. @param node_of by rank; empty: nodes do not matter
/// @pre each layer that a member is to hold is held by one
template <class OnlyWhenCalled = void>
reshard_plan plan_copies(std::vector<rank_layers> const& held, std::vector<rank_layers> const& wanted, replanning const& known,
                         std::vector<node_id> const& node_of = {})
{
    auto const tensors = layout_tensors(known.state, known.formats);
    auto out = try_reshard({.from = state_layout(known.state, tensors, held),
                            .to = state_layout(known.state, tensors, wanted),
                            .node_of = node_of,
                            .round_budget = known.round_budget});
    expects(!out.fault, "what is not lost has a holder to copy it from");
    return std::move(out.plan);
}

/// The plan that puts the members into the chosen pipelines: salvage and copies. @pre holdings ascend by rank
/// @param node_of by rank: copies come from the own node where they can; empty: nodes do not matter
template <class OnlyWhenCalled = void>
recovery_plan replan(array_view<rank_holdings const> holdings, replanning const& known, result<recomposition> chosen, std::vector<node_id> const& node_of = {})
{
    recovery_plan plan;
    auto request =
        salvage_request{holdings, &known.state, {}, {}, known.layers, known.wanted.microbatches, known.slices, known.cells_per_layer, &known.optimizer};
    plan.salvage = salvage(request);
    plan.error = chosen.error();
    if (!plan.salvage.lost.empty() || !chosen) {
        return plan;
    }
    plan.pipelines = std::move(chosen->pipelines);
    plan.shares = std::move(chosen->shares);
    plan.spares = std::move(chosen->spares);
    plan.degraded = chosen->degraded;
    plan.time = chosen->time;
    request.pipelines = plan.pipelines;
    request.shares = plan.shares;
    plan.salvage = salvage(request);

    plan.copies = plan_copies(layers_by_rank(holdings), layers_by_rank(plan.salvage.after), known, node_of);
    return plan;
}

/// Cuts the plan to its next round, if places change between two steps and a rank has no memory for all copies at once. After a loss in a step, and if nobody
/// can make room, all is copied at once. @param holdings that the plan was made from
template <class OnlyWhenCalled = void>
void limit_to_round(recovery_plan& plan, array_view<rank_holdings const> holdings, replanning const& known, in_place_memory const& memory,
                    std::vector<node_id> const& node_of = {})
{
    auto& salvage = plan.salvage;
    bool const is_between_steps = std::all_of(holdings.begin(), holdings.end(), [](rank_holdings const& holds) {
        return std::all_of(holds.uses.begin(), holds.uses.end(), [](use_holding const& use) { return use.done.empty(); });
    });
    if (!plan.error.empty() || !salvage.lost.empty() || !is_between_steps || !needs_rounds(holdings, salvage.after, known.state, memory)) {
        return;
    }
    if (auto round = next_round(holdings, salvage.after, known.state, memory, known.wanted.failures)) {
        plan.copies = plan_copies(layers_by_rank(holdings), layers_by_rank(round->received), known, node_of);
        salvage.after = std::move(round->after);
        for (auto& holds : salvage.after) {
            for (std::size_t u = 0; u < known.state.uses.size(); ++u) {
                if (std::binary_search(holds.layers.begin(), holds.layers.end(), known.state.uses[u].layer)) {
                    holds.uses.push_back({use_id{static_cast<std::int32_t>(u)}, {}});
                }
            }
        }
        salvage.in_place = true;
        salvage.more = round->more;
    }
}

/// The plan for the members whose holdings are known, in pipelines of the planner's choice. @pre holdings ascend by rank
template <class OnlyWhenCalled = void>
recovery_plan replan(array_view<rank_holdings const> holdings, replanning const& known)
{
    return replan(holdings, known, recompose(holdings, known.ready, tensor_bytes_of(known.state, known.formats), known.wanted));
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template recovery_plan replan<>(array_view<rank_holdings const>, replanning const&, result<recomposition>, std::vector<node_id> const&);
#endif

}  // namespace rheo::inline v0
