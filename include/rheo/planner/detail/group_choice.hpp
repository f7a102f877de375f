#pragma once
// SPDX-License-Identifier: Apache-2.0

// Ways to continue with groups of ranks, and which of them is taken. Included by group_planner.hpp.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "rheo/model/model.hpp"
#include "rheo/pipeline/recomposition.hpp"
#include "rheo/pipeline/recovery_price.hpp"
#include "rheo/pipeline/survivability.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/plan_error.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/planner/recompute_choice.hpp"

namespace rheo::inline v0::detail {

/// The plan with these pipelines and shares.
template <class OnlyWhenCalled = void>
plan plan_of(std::vector<pipeline_instance> pipelines, std::vector<int> const& shares, model_description const& model, planning_request const& request)
{
    plan p{.schedule = request.schedule,
           .pipelines = std::move(pipelines),
           .work = deal(shares),
           .spares = {},
           .recompute = {.every_stage = request.recompute == recompute_policy::always},
           .slices = request.microbatch.slices,
           .optimizer = optimizer_shards_of(request)};
    choose_recomputation(p, model, request);
    return p;
}

/// Whether a pipeline of groups fits the memory limit if it runs all microbatches.
template <class OnlyWhenCalled = void>
bool fits_alone(pipeline_instance const& pipeline, model_description const& model, planning_request const& request)
{
    if (!request.memory_limit) {
        return true;
    }
    auto const alone = plan_of({pipeline}, {request.microbatches}, model, request);
    return memory_error(alone, model, request, ranks_of(alone).back().value + 1, optimizer_share(request)).empty();
}

/// A way to continue.
struct group_choice {
    recomposition next;
    plan as_plan;
    survivability afterwards;
};

/// Whether any f nodes and any f ranks can be lost afterwards.
inline bool survives(group_choice const& choice, int failures) { return std::min(choice.afterwards.nodes, choice.afterwards.ranks) >= failures; }

/// Keeps those that survive the most losses, up to f, of nodes and then of ranks.
template <class OnlyWhenCalled = void>
void keep_most_surviving(std::vector<group_choice>& choices, int failures)
{
    auto const survived = [&](group_choice const& choice) {
        return std::pair{std::min(choice.afterwards.nodes, failures), std::min(choice.afterwards.ranks, failures)};
    };
    std::pair most{0, 0};
    for (auto const& choice : choices) {
        most = std::max(most, survived(choice));
    }
    std::erase_if(choices, [&](group_choice const& choice) { return survived(choice) < most; });
}

/// The cheapest, the first of several. @param place gives ranks their places so that few bytes move, and counts them: it is asked only where a choice could
/// be the cheapest if nothing moved  @pre there is one
template <class Place>
recomposition cheapest(std::vector<group_choice> choices, recovery_price price, Place const& place)
{
    price.quickest = choices.front().next.time;
    for (auto const& choice : choices) {
        price.quickest = std::min(price.quickest, choice.next.time);
    }
    recomposition* best = nullptr;
    seconds least;
    for (auto& choice : choices) {
        auto& next = choice.next;
        if (best == nullptr || price(next.time, {}) < least) {
            place(choice);
            if (auto const cost = price(next.time, next.moved); best == nullptr || cost < least) {
                best = &next;
                least = cost;
            }
        }
    }
    return std::move(*best);
}

}  // namespace rheo::inline v0::detail
