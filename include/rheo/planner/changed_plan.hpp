#pragma once
// SPDX-License-Identifier: Apache-2.0

// A running job moves to another (tensor, pipeline, data) configuration, as in Tenplex (SOSP'24). The planner makes the new pipelines; this header assigns
// ranks to their places so that the fewest bytes move. The shard grid stays, so whole tensors of cells move, the executor copies them by the recovery
// protocol, and the results keep their bits.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rheo/model/parameter_bytes.hpp"
#include "rheo/plan/holdings_under.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/detail/text.hpp"
#include "rheo/planner/make_plan_on.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/recover/in_place.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// Assigns ranks to the places of the plan so that the fewest bytes move: any rank to any place, or whole nodes where ranks share nodes. Returns the plan
/// unchanged if no assignment moves fewer bytes. @param staying ranks that may have a place, ascending  @param holdings of all members, ascending by rank
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
    auto const after = holdings_under(p, ranks_of(p), known.cells_per_layer, known.optimizer);
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

/// What the tensors take at a rank, and how much there is: request.memory_limit. @param state of the job's replanning
template <class OnlyWhenCalled = void>
in_place_memory make_in_place_memory(collection const& state, planning_request const& request)
{
    in_place_memory memory{.limit = request.memory_limit};
    for (auto const& tensor : state.tensors) {
        auto const parts = parameter_bytes_of(tensor.shape, request.policy, gradient_buffer::joined, static_cast<int>(tensor.uses.size()));
        auto const has = [&](tensor_role role) { return has_role(tensor.committed, role); };
        bool const is_copy = tensor.committed == committed_roles::copy;
        auto const kept = (has(tensor_role::parameter) && !is_copy ? parts.master : bytes{}) + (has(tensor_role::second_moment) ? parts.moments : bytes{}) +
                          (are_of_keepers(tensor.committed) ? bytes{} : parts.stored);
        memory.committed.push_back(tensor.is_parameter ? kept : bytes{});
        memory.all.push_back(memory.committed.back() +
                             (tensor.is_parameter && !are_of_keepers(tensor.committed) ? parts.accumulators + parts.reduced : bytes{}));
    }
    return memory;
}

/// Why ranks cannot come from what they hold to their places under the plan within the memory that they have; empty if they can.
template <class OnlyWhenCalled = void>
std::string in_place_error(std::vector<rank_holdings> const& held, plan const& p, replanning const& known, in_place_memory const& memory)
{
    std::vector<rank_id> ranks;
    for (auto const& holds : held) {
        ranks.push_back(holds.rank);
    }
    auto const wanted = holdings_under(p, ranks, known.cells_per_layer, known.optimizer);
    auto const shortage = in_place_shortage_of(held, wanted, known.state, memory, known.wanted.failures);
    return shortage ? "on the way rank " + std::to_string(shortage->rank.value) + " would hold " + detail::mebibytes_text(shortage->needed) +
                          " MiB of state, but has " + detail::memory_limit_text(*memory.limit)
                    : std::string{};
}

}  // namespace rheo::inline v0
