#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan with which a job begins: pipelines of templates (planner/job_templates.hpp), in sizes as the request says or as the planner
// chooses them, ranks in their order, and what is recomputed. A pure function of model, request and number of ranks, so every rank makes the same
// plan, and `rheo plan` shows what `rheo train` will run.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rheo/model/model.hpp"
#include "rheo/pipeline/arranged_by_nodes.hpp"
#include "rheo/pipeline/instantiate.hpp"
#include "rheo/pipeline/recompose_nodes.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/detail/least_memory.hpp"
#include "rheo/planner/detail/text.hpp"
#include "rheo/planner/initial_plan.hpp"
#include "rheo/planner/job_templates.hpp"
#include "rheo/planner/plan_error.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/planner/recompute_choice.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/schedule/families/schedule_form.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// Ranks 0 .. count-1.
template <class OnlyWhenCalled = void>
std::vector<rank_id> numbered_ranks(int count)
{
    std::vector<rank_id> ranks(static_cast<std::size_t>(count));
    std::iota(ranks.begin(), ranks.end(), rank_id{0});
    return ranks;
}

/// Pipelines of these sizes with the ranks in their order. @pre there is a template of each size, and a rank for each place
template <class OnlyWhenCalled = void>
std::vector<pipeline_instance> pipelines_of_sizes(template_set_value const& ready, array_view<int const> sizes, array_view<rank_id const> ranks)
{
    std::vector<pipeline_instance> pipelines;
    std::size_t next = 0;
    for (auto const n : sizes) {
        auto const count = static_cast<std::size_t>(n);
        pipelines.push_back(make_instance(template_of_size(ready, n), ranks.subspan(next, count)));
        next += count;
    }
    return pipelines;
}

/// How many stages a rank has at most in pipelines of the schedule, those of both copies of the model counted.
template <class OnlyWhenCalled = void>
int stages_per_rank(any_schedule schedule, int ranks)
{
    int most = 1;  // pipelines that are not of the family have one
    for (int const n : {2, ranks}) {
        if (auto const form = schedule->microbatches == 0 || n == ranks ? form_of(schedule, n) : possible_form{}) {
            most = std::max(most, (static_cast<int>(form->where.positions.size()) + n - 1) / n);
        }
    }
    return most;
}

/// What a refusal by the memory limit says.
enum class limit_refusal : std::uint8_t {
    limit_only,
    with_least  ///< and what would be enough, which takes the time of a dozen plans
};

namespace detail {

/// Cuts the pipelines as the request says. Returns why that cannot be.
template <class OnlyWhenCalled = void>
std::string cut_by_hand(std::vector<pipeline_instance>& pipelines, std::vector<int> const& layers_of_stages, int layers)
{
    std::size_t stages = 0;
    for (auto const& pipeline : pipelines) {
        stages += static_cast<std::size_t>(stage_count(pipeline.cuts));
    }
    auto const key = "plan.layers = " + list_text(layers_of_stages);
    if (layers_of_stages.size() != stages) {
        return key + " must name the layers of " + std::to_string(stages) + " stages, not of " + std::to_string(layers_of_stages.size());
    }
    auto next = layers_of_stages.begin();
    for (std::size_t p = 0; p < pipelines.size(); ++p) {
        auto& cuts = pipelines[p].cuts;
        for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
            cuts[s + 1] = layer_id{cuts[s].value + *next++};
        }
        if (cuts.back().value != layers) {
            return key + " gives pipeline " + std::to_string(p) + " " + std::to_string(cuts.back().value) + " layers, but the model has " +
                   std::to_string(layers);
        }
    }
    return {};
}

/// Pipelines of whole nodes in place of those of the planner's choice, if they survive more losses of nodes and there are enough of them.
template <class OnlyWhenCalled = void>
std::optional<recomposition> of_whole_nodes(template_set_value const& ready, planning_request const& request, array_view<rank_id const> ranks,
                                            std::vector<pipeline_instance> const& chosen)
{
    if (request.node_size == 1 || !request.pipelines.empty()) {
        return std::nullopt;
    }
    std::vector<rank_holdings> members;
    for (auto const r : ranks.subspan(0, ranks.size() - static_cast<std::size_t>(request.spares))) {
        members.push_back({r, {}, {}, {}});
    }
    auto const nodes = nodes_of(members, request.node_size);
    std::vector<tensor_bytes> layers;
    for (layer_id l{0}; l < ready.templates.front().cuts.back(); ++l) {
        layers.push_back({{l}, bytes{1}});
    }
    auto const lost_at = [&](std::vector<pipeline_instance> const& pipelines) {
        return survivability_of(holdings_in({.pipelines = pipelines}, members), layers, nodes).nodes;
    };
    auto const now = lost_at(chosen);
    if (now >= request.failures) {
        return std::nullopt;
    }
    auto whole = recompose_nodes(members, nodes, request.node_size, ready, {}, {request.failures, request.microbatches});
    return whole && lost_at(whole->pipelines) > now ? std::optional{*std::move(whole)} : std::nullopt;
}

struct chosen_sizes {
    std::vector<int> sizes;
    std::vector<int> shares;
    bool degraded;
};

/// Why no pipeline of one of the sizes keeps within the memory limit. @param which says the sizes  @param copies pipelines that hold each layer
template <class OnlyWhenCalled = void>
std::string limit_error(std::string const& which, model_description const& model, planning_request const& request, size_range sizes, int copies,
                        limit_refusal says)
{
    auto error = "no pipeline of " + which + " keeps within plan.memory_mib = " + memory_limit_text(*request.memory_limit);
    if (says == limit_refusal::limit_only) {
        return error;
    }
    auto const least = least_memory(model, request, sizes, copies);
    return least ? error + "; the least that one needs is " + hundredths_text(*least)
                 : "no pipeline of " + which + " can be made for " + std::string{name_of(request.schedule)};
}

/// Sizes and shares of the pipelines: the request's, or the quickest. @param copies pipelines that hold each layer
template <class OnlyWhenCalled = void>
result<chosen_sizes> choose_sizes(template_set_value const& ready, model_description const& model, planning_request const& request, int ranks, int copies,
                                  limit_refusal says)
{
    auto const layers = static_cast<int>(model.layers.size());
    if (request.pipelines.empty()) {
        auto chosen = instantiate(ready, {ranks - request.spares, request.failures, request.microbatches});
        if (chosen) {
            return chosen_sizes{std::move(chosen->sizes), std::move(chosen->shares), chosen->degraded};
        }
        if (request.min_ranks > layers) {
            return failure{"a pipeline of plan.min_ranks = " + ranks_text(request.min_ranks) + " cannot be cut from a model of " + std::to_string(layers) +
                           " layers"};
        }
        if (ready.templates.empty() && request.memory_limit) {
            return failure{limit_error("at most " + ranks_text(ranks), model, request, {request.min_ranks, std::max(request.min_ranks, ranks)}, copies, says)};
        }
        return failure{chosen.error()};
    }
    for (auto const n : request.pipelines) {
        if (n > layers) {
            return failure{"a pipeline of " + std::to_string(n) + " ranks cannot be cut from a model of " + std::to_string(layers) + " layers"};
        }
        if (auto const made = sizes_of(ready); std::find(made.begin(), made.end(), n) == made.end()) {
            return failure{request.memory_limit ? limit_error(std::to_string(n) + " ranks", model, request, {n, n}, copies, says)
                                                : "no pipeline of " + std::to_string(n) + " ranks can be made for " + std::string{name_of(request.schedule)}};
        }
    }
    chosen_sizes chosen{request.pipelines, request.shares, static_cast<int>(request.pipelines.size()) < request.failures + 1};
    if (chosen.shares.empty()) {
        auto split = split_batch(costs_of_sizes(ready, chosen.sizes), request.microbatches);
        expects(split.unplaced == 0, "a template has memory for an even share");
        chosen.shares = std::move(split.shares);
    }
    return chosen;
}

/// How many pipelines at least hold each layer in plans of the request for so many ranks: what memory depends on.
constexpr int copies_planned(planning_request const& request, int ranks) { return ranks - request.spares == 1 || request.pipelines.size() == 1 ? 1 : 2; }

/// The plan with stages of one rank. @param ready templates of all sizes that may be chosen, or of those that the request names
template <class OnlyWhenCalled = void>
result<initial_plan> plan_of_templates(template_set_value const& ready, model_description const& model, planning_request const& request,
                                       array_view<rank_id const> ranks, limit_refusal says)
{
    auto const count = static_cast<int>(ranks.size());
    auto const layers = static_cast<int>(model.layers.size());
    auto const chosen = choose_sizes(ready, model, request, count, copies_planned(request, count), says);
    if (!chosen) {
        return failure{chosen.error()};
    }
    initial_plan answer{.plan = {.schedule = request.schedule,
                                 .pipelines = pipelines_of_sizes(ready, chosen->sizes, ranks),
                                 .work = {},
                                 .spares = {},
                                 .recompute = {.every_stage = request.recompute == recompute_policy::always},
                                 .slices = request.microbatch.slices,
                                 .optimizer = optimizer_shards_of(request)},
                        .degraded = chosen->degraded};
    auto& p = answer.plan;
    auto shares = chosen->shares;
    auto const costs = costs_of_sizes(ready, chosen->sizes);
    for (std::size_t i = 0; i < costs.size(); ++i) {
        answer.time = std::max(answer.time, time_of(costs[i], shares[i]));
    }
    if (!request.layers.empty()) {
        if (auto error = cut_by_hand(p.pipelines, request.layers, layers); !error.empty()) {
            return failure{std::move(error)};
        }
    }
    if (request.node_size > 1 && !request.pipelines.empty()) {
        p.pipelines = arranged_by_nodes(std::move(p.pipelines), request.node_size, request.failures + 1);
    }
    if (auto whole = of_whole_nodes(ready, request, ranks, p.pipelines)) {
        p.pipelines = std::move(whole->pipelines);
        shares = std::move(whole->shares);
        answer.time = whole->time;
    }
    p.work = deal(shares);
    for (auto const r : ranks) {
        if (!position_of(p, r).found) {
            p.spares.push_back(r);
        }
    }
    if (request.group_size > 1) {
        return answer;  // memory is looked at when the groups have their ranks
    }
    choose_recomputation(p, model, request);
    if (auto error = memory_error(p, model, request, ranks.back().value + 1); !error.empty()) {
        return failure{std::move(error)};
    }
    return answer;
}

}  // namespace detail

template <class OnlyWhenCalled = void>
result<initial_plan> plan_of_groups(model_description const& model, planning_request const& request, array_view<rank_id const> ranks);
template <class OnlyWhenCalled = void>
result<initial_plan> plan_of_shortest_step(model_description const& model, planning_request request, array_view<rank_id const> ranks);

/// The plan for these ranks, the last `spares` of them without a place; their numbers may have gaps. Where the loss of `failures` nodes would lose state,
/// pipelines of the planner's choice are made of whole nodes, and ranks of those in request.pipelines exchange places.
/// @param ranks ascending, more than request.spares  @pre request.pipelines, where given, take all other ranks  @returns a plan, or why there is none
template <class OnlyWhenCalled = void>
result<initial_plan> make_initial_plan(model_description const& model, planning_request const& request, array_view<rank_id const> ranks,
                                       limit_refusal says = limit_refusal::with_least)
{
    if (request.tensor.is_automatic() || !request.candidates.empty()) {
        return plan_of_shortest_step(model, request, ranks);
    }
    if (!request.tensor.is_one()) {
        return plan_of_groups(model, request, ranks);
    }
    auto const count = static_cast<int>(ranks.size());
    auto const limit = request.layers.empty() ? request.memory_limit : std::nullopt;  // what is cut by hand is judged as it is
    auto const copies = detail::copies_planned(request, count);
    auto const ready = request.pipelines.empty() ? ready_templates(model, request, count, limit, copies) : named_templates(model, request, limit, copies);
    return detail::plan_of_templates(ready, model, request, ranks, says);
}

/// The plan for ranks 0 .. ranks-1.
template <class OnlyWhenCalled = void>
result<initial_plan> make_plan(model_description const& model, planning_request const& request, int ranks)
{
    return make_initial_plan(model, request, numbered_ranks(ranks));
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template result<initial_plan> make_initial_plan<>(model_description const&, planning_request const&, array_view<rank_id const>, limit_refusal);
extern template result<initial_plan> make_plan<>(model_description const&, planning_request const&, int);
#endif

}  // namespace rheo::inline v0

#include "rheo/planner/detail/plan_of_groups.hpp"
#include "rheo/planner/detail/plan_of_shortest_step.hpp"
