#pragma once
// SPDX-License-Identifier: Apache-2.0

// The choices that the request leaves to the planner, made together: the schedule (plan.schedule = "auto"), how many ranks share a stage (plan.tensor =
// 0), and how many pipelines of how many ranks there are. Each combination is planned and priced with its messages, exchanges and recomputation; the
// shortest step is taken. Included by make_plan.hpp.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rheo/model/grid.hpp"
#include "rheo/plan/pipeline_schedule.hpp"
#include "rheo/plan/rank_memory.hpp"
#include "rheo/planner/group_prices.hpp"
#include "rheo/planner/make_plan.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The better one first: as many pipelines as wanted, the shorter step, one that runs its schedule, the less memory.
inline bool is_better(compared_plan const& a, compared_plan const& b)
{
    if (a.error.empty() != b.error.empty()) {
        return a.error.empty();
    }
    if (a.degraded != b.degraded) {
        return b.degraded;
    }
    if (a.time != b.time) {
        return a.time < b.time;
    }
    if (a.instead.empty() != b.instead.empty()) {
        return a.instead.empty();
    }
    return a.fullest < b.fullest;
}

/// What the pipelines run if none runs the plan's schedule, and why; else empty.
template <class OnlyWhenCalled = void>
std::string order_instead(plan const& p)
{
    std::string instead;
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const order = schedule_of(p, i);
        if (order.error.empty()) {
            return {};
        }
        instead = order.family ? std::string{name_of(order)} : "an order by list scheduling";
        instead += ": " + order.error;
    }
    return instead;
}

/// What is compared of a plan. Sets the plan's time.
template <class OnlyWhenCalled = void>
compared_plan to_compared_plan(result<initial_plan>& made, model_description const& model, planning_request const& request)
{
    compared_plan one{.schedule = request.schedule, .degree = request.tensor.largest(), .error = made.error()};
    if (!made) {
        return one;
    }
    auto const& p = made->plan;
    one.time = made->time = time_of_step(p, model, request);
    for (auto const& pipeline : p.pipelines) {
        for (auto const rank : ranks_of(pipeline)) {
            one.fullest = std::max(one.fullest, needed_bytes(memory_parts_of(p, model, request.microbatch, request.policy, rank)));
        }
    }
    one.recomputes = p.recompute != plan_recompute{};
    one.degraded = made->degraded;
    one.instead = order_instead(p);
    return one;
}

/// The degrees that the request leaves to choose from, or its own.
template <class OnlyWhenCalled = void>
std::vector<tensor_degrees> degrees_to_compare(model_description const& model, planning_request const& request, array_view<rank_id const> ranks)
{
    if (!request.tensor.is_automatic()) {
        return {request.tensor};
    }
    auto const nodes = ranks_by_node(ranks, request.node_size);
    auto const largest = std::max_element(nodes.begin(), nodes.end(), [](auto const& a, auto const& b) { return a.size() < b.size(); });
    auto const most = std::min({grid_of(model), static_cast<int>(ranks.size()) - request.spares, static_cast<int>(largest->size())});
    std::vector<tensor_degrees> degrees;
    for (int degree = 1; degree <= most; ++degree) {
        degrees.push_back({{degree}});
    }
    return degrees;
}

/// Why no combination has a plan. @param compared the better ones first  @param error of the first
template <class OnlyWhenCalled = void>
std::string no_plan_error(std::vector<compared_plan> const& compared, planning_request const& request, std::string const& error)
{
    auto const& first = compared.front();
    if (request.candidates.size() > 1) {
        return "plan.schedule = \"auto\": no schedule has a plan; with " + std::string{name_of(first.schedule)} + ", " + error;
    }
    return "plan.tensor = 0: no number of ranks can share stages, 1 to " + std::to_string(compared.back().degree) + "; alone, " + error;
}

}  // namespace detail

/// The plan with the shortest modelled step of all that the request leaves open; plans with f + 1 pipelines come first. Where the request allows
/// recomputation to save memory, cuts that need none are compared, too. Cost: a plan for each schedule and degree.
template <class OnlyWhenCalled>
result<initial_plan> plan_of_shortest_step(model_description const& model, planning_request request, array_view<rank_id const> ranks)
{
    auto const degrees = detail::degrees_to_compare(model, request, ranks);
    auto const asked = request;
    auto const candidates = std::exchange(request.candidates, {});
    auto policies = std::vector{asked.recompute};
    if (asked.recompute == recompute_policy::automatic || asked.recompute == recompute_policy::selective) {
        policies.push_back(recompute_policy::never);
    }
    result<initial_plan> best = failure{"none"};
    compared_plan of_best{.error = "none"};
    std::vector<compared_plan> compared;
    for (auto const schedule : candidates.empty() ? std::vector{asked.schedule} : candidates) {
        request.schedule = schedule;
        for (auto const& degree : degrees) {
            request.tensor = degree;
            compared_plan of_both{.error = "none"};
            for (auto const policy : policies) {
                request.recompute = policy;
                auto made = make_initial_plan(model, request, ranks, limit_refusal::limit_only);
                auto one = detail::to_compared_plan(made, model, request);
                if (made && detail::is_better(one, of_best)) {
                    best = std::move(made);
                    of_best = one;
                }
                if (policy == asked.recompute || detail::is_better(one, of_both)) {
                    of_both = std::move(one);
                }
            }
            compared.push_back(std::move(of_both));
        }
    }
    std::stable_sort(compared.begin(), compared.end(), detail::is_better);
    if (!best) {
        request.schedule = compared.front().schedule;
        request.tensor = degrees.front();
        request.recompute = asked.recompute;
        return failure{detail::no_plan_error(compared, asked, make_initial_plan(model, request, ranks).error())};
    }
    best->compared = std::move(compared);
    return best;
}

}  // namespace rheo::inline v0
