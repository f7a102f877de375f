#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan of a job that goes from one (tensor, pipeline, data) configuration to another while it runs, as in Tenplex (SOSP'24): the planner makes the
// pipelines, and the ranks that take their places are those for which the fewest bytes move. On one shard grid only whole tensors of cells move, so the
// executor copies them by the protocol of a recovery, and results keep their bits.

#include <algorithm>
#include <utility>
#include <vector>

#include "rheo/plan/cells.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/make_plan_on.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

namespace detail {

/// What each rank of the plan would hold, in layers or cells, ascending by rank.
template <class OnlyWhenCalled = void>
std::vector<rank_holdings> holdings_under(plan const& p, int cells_per_layer)
{
    std::vector<rank_holdings> holdings;
    for (auto const& pipeline : p.pipelines) {
        for (auto const rank : ranks_of(pipeline)) {
            holdings.push_back({rank, {}, cells_of(pipeline, rank, cells_per_layer), {}});
        }
    }
    std::sort(holdings.begin(), holdings.end(), [](auto const& a, auto const& b) { return a.rank < b.rank; });
    return holdings;
}

}  // namespace detail

/// The plan with its places dealt to the ranks so that the fewest bytes move; where ranks share nodes, to whole nodes. As it is where nothing is gained.
/// @param staying the ranks that may have a place, ascending  @param holdings of all members, ascending by rank
template <class OnlyWhenCalled = void>
plan with_fewest_moves(plan p, array_view<rank_id const> staying, array_view<rank_holdings const> holdings, replanning const& known, membership_rules rules)
{
    auto const tensors = layout_tensors(known.state, known.formats);
    std::vector<rank_layers> held;
    for (auto const& holds : holdings) {
        if (std::binary_search(staying.begin(), staying.end(), holds.rank)) {
            held.push_back({holds.rank, holds.layers});
        }
    }
    auto const after = detail::holdings_under(p, known.cells_per_layer);
    reshard_request request{.from = state_layout(known.state, tensors, held),
                            .to = state_layout(known.state, tensors, layers_by_rank(after)),
                            .live = {staying.begin(), staying.end()},
                            .node_of = detail::nodes_by_rank(holdings, rules)};
    auto const as_planned = try_reshard(request);
    request.ranks = rules.node_size > 1 ? rank_choice::whole_nodes : rank_choice::any;
    auto const chosen = try_reshard(request);
    if (chosen.fault || (!as_planned.fault && as_planned.plan.certificate.needed.value <= chosen.plan.certificate.needed.value)) {
        return p;
    }
    p = with_ranks(std::move(p), [&](rank_id place) { return rank_at(chosen.plan, place); });
    p.spares.assign(staying.begin(), staying.end());
    for (auto const& pipeline : p.pipelines) {
        for (auto const rank : ranks_of(pipeline)) {
            std::erase(p.spares, rank);
        }
    }
    return p;
}

}  // namespace rheo::inline v0
