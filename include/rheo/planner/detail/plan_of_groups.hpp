#pragma once
// SPDX-License-Identifier: Apache-2.0

// Plans for stages that several ranks share (plan.tensor). A group is planned as if it were one rank. Included by make_plan.hpp.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "rheo/model/grid.hpp"
#include "rheo/planner/group_prices.hpp"
#include "rheo/planner/make_plan.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The request with one rank for each group. Where groups have different sizes, memory is not known before each has its place: group_size is 1.
template <class OnlyWhenCalled = void>
planning_request request_of_groups(planning_request request, model_description const& model, ranks_in_groups const& grouped)
{
    std::size_t fewest = grouped.groups.front().size();
    bool is_even = true;
    for (auto const& group : grouped.groups) {
        is_even = is_even && group.size() == grouped.groups.front().size();
        fewest = std::min(fewest, group.size());
    }
    auto const degree = static_cast<int>(fewest);
    request.profile = with_group_prices(planned_layers(model, request), model, request, degree);
    for (auto& layer : request.profile) {
        auto const shared = degree == 1 ? seconds{} : layer.all_reduce.back();
        layer.forward = layer.forward / degree + shared;
        layer.backward = layer.backward / degree + shared;
        layer.boundary = {layer.boundary.count / degree};  // each member sends its strip
    }
    request.node_size = grouped.groups_per_node;
    request.tensor = {};
    request.min_ranks = (request.min_ranks + degree - 1) / degree;
    request.pipelines = grouped.pipelines;
    request.spares = 0;
    request.group_size = is_even ? degree : 1;
    return request;
}

/// The plan with groups in the place of their numbers. @returns why it cannot be in force
template <class OnlyWhenCalled = void>
result<initial_plan> with_groups(initial_plan made, ranks_in_groups const& grouped, model_description const& model, planning_request const& request, int ranks)
{
    auto& p = made.plan;
    auto const group_of_number = [&](rank_id number) -> std::vector<rank_id> const& {
        auto const place = std::lower_bound(grouped.numbers.begin(), grouped.numbers.end(), number) - grouped.numbers.begin();
        return grouped.groups[static_cast<std::size_t>(place)];
    };
    for (auto& pipeline : p.pipelines) {
        for (auto& stage : pipeline.stages) {
            stage = group_of_number(stage.front());
        }
    }
    for (auto const unused : std::exchange(p.spares, grouped.spares)) {
        auto const& group = group_of_number(unused);
        p.spares.insert(p.spares.end(), group.begin(), group.end());
    }
    std::sort(p.spares.begin(), p.spares.end());
    p.recompute = {.every_stage = request.recompute == recompute_policy::always};
    p.optimizer = optimizer_shards_of(request);
    choose_recomputation(p, model, request);
    if (auto error = memory_error(p, model, request, ranks); !error.empty()) {
        return failure{std::move(error)};
    }
    return made;
}

/// The plan with groups of plan.tensor ranks, without its time: the quickest, or if that needs more memory than there is, the quickest of those whose
/// templates keep within it. @param plan_for makes the plan of a request with one rank for each group, for the numbers of the groups
template <class PlanFor>
result<initial_plan> grouped_plan(model_description const& model, planning_request const& request, array_view<rank_id const> ranks, PlanFor const& plan_for)
{
    if (auto const grid = grid_of(model); request.tensor.largest() > grid) {
        return failure{"plan.tensor = " + std::to_string(request.tensor.largest()) + " needs train.shards of " + std::to_string(request.tensor.largest()) +
                       " or more; it is " + std::to_string(grid) + " and decides the bits"};
    }
    auto grouped = group_ranks(request.tensor, request.pipelines, ranks, request.spares, request.node_size);
    if (!grouped) {
        return failure{grouped.error()};
    }
    auto of_groups = request_of_groups(request, model, *grouped);
    auto const made_for = [&](std::optional<bytes> limit) {
        of_groups.memory_limit = limit;
        auto made = plan_for(of_groups, array_view<rank_id const>{grouped->numbers});
        return made ? with_groups(*std::move(made), *grouped, model, request, ranks.back().value + 1) : std::move(made);
    };
    auto quickest = made_for(std::nullopt);
    if (!quickest && request.memory_limit && request.layers.empty() && of_groups.group_size > 1) {
        if (auto within = made_for(request.memory_limit)) {
            return within;
        }
    }
    return quickest;
}

}  // namespace detail

/// The plan with groups of plan.tensor ranks.
template <class OnlyWhenCalled>
result<initial_plan> plan_of_groups(model_description const& model, planning_request const& request, array_view<rank_id const> ranks)
{
    auto made = detail::grouped_plan(model, request, ranks, [&](planning_request const& of_groups, array_view<rank_id const> numbers) {
        return make_initial_plan(model, of_groups, numbers, limit_refusal::limit_only);
    });
    if (made) {
        made->time = time_of_step(made->plan, model, request);
    }
    return made;
}

}  // namespace rheo::inline v0
