#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan of a recovery: from the members' holdings to new pipelines, the copies that they need and the
// salvage of the step. It is a pure function of the exchanged holdings and of what all ranks know since the
// start, so every member computes the same value and no rank has to be asked.

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rheo/pipeline/recompose.hpp"
#include "rheo/recover/salvage.hpp"
#include "rheo/reshard/copy_plan.hpp"
#include "rheo/reshard/layout.hpp"
#include "rheo/reshard/tensor_bytes.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

struct recovery_plan {
    std::vector<pipeline_instance> pipelines;
    std::vector<int> shares;                ///< of a whole step's microbatches
    std::vector<rank_id> spares;            ///< members without a place
    bool degraded = false;                  ///< fewer than f + 1 copies of each layer
    std::vector<std::vector<copy>> rounds;  ///< copies of state; a round begins when the one before it has ended
    bytes moved;                            ///< by the copies
    salvage_plan salvage;
    std::string error;  ///< why there are no pipelines; what can be salvaged is known without them

    friend bool operator==(recovery_plan const&, recovery_plan const&) = default;
};

/// What all ranks know since the start.
struct replanning {
    collection state;                     ///< of the model
    int layers;                           ///< of the model
    template_set_value ready;             ///< what pipelines can be made
    recomposition_request wanted;         ///< how many to keep; microbatches of a step
    bytes element_bytes;                  ///< of an element of a parameter with all that travels with it
    std::optional<bytes> round_budget{};  ///< most bytes that a rank receives in one round
    int slices = 1;                       ///< of a microbatch, each of which contributes for itself
};

/// The plan that puts the members into the chosen pipelines: salvage and copies. @pre holdings ascend by rank
template <class OnlyWhenCalled = void>
recovery_plan replan(array_view<rank_holdings const> holdings, replanning const& known, result<recomposition> chosen)
{
    recovery_plan plan;
    auto request = salvage_request{holdings, &known.state, {}, {}, known.layers, known.wanted.microbatches, known.slices};
    plan.salvage = salvage(request);
    plan.error = chosen.error();
    if (!plan.salvage.lost.empty() || !chosen) {
        return plan;
    }
    plan.pipelines = std::move(chosen->pipelines);
    plan.shares = std::move(chosen->shares);
    plan.spares = std::move(chosen->spares);
    plan.degraded = chosen->degraded;
    request.pipelines = plan.pipelines;
    request.shares = plan.shares;
    plan.salvage = salvage(request);

    copy_plan_request copies;
    for (std::size_t r = 0; r < holdings.size(); ++r) {
        copies.held.push_back({holdings[r].rank, whole_parts(known.state, holdings[r].layers)});
        copies.wanted.push_back({holdings[r].rank, whole_parts(known.state, plan.salvage.after[r].layers)});
    }
    copies.element_bytes.assign(known.state.tensors.size(), known.element_bytes);
    copies.round_budget = known.round_budget;
    auto answer = copy_plan(copies);
    expects(answer.lost.empty(), "what is not lost has a holder to copy it from");
    plan.rounds = std::move(answer.rounds);
    plan.moved = answer.moved;
    return plan;
}

/// The plan for the members whose holdings are known, in pipelines of the planner's choice. @pre holdings ascend by rank
template <class OnlyWhenCalled = void>
recovery_plan replan(array_view<rank_holdings const> holdings, replanning const& known)
{
    return replan(holdings, known, recompose(holdings, known.ready, tensor_bytes_of(known.state, known.element_bytes), known.wanted));
}

}  // namespace rheo::inline v0
