#pragma once
// SPDX-License-Identifier: Apache-2.0

// Computes what a plan leads to (planner/forecast.hpp), by the functions that a run plans with after a loss.

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "rheo/model/model.hpp"
#include "rheo/pipeline/instantiate.hpp"
#include "rheo/pipeline/survivability.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/plan/cells.hpp"
#include "rheo/plan/holdings_under.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/plan/rank_memory.hpp"
#include "rheo/planner/forecast.hpp"
#include "rheo/planner/group_prices.hpp"
#include "rheo/planner/job_templates.hpp"
#include "rheo/planner/make_replanning.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/reshard/tensor_bytes.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

template <class OnlyWhenCalled = void>
std::vector<int> ranks_of_each(array_view<pipeline_instance const> pipelines)
{
    std::vector<int> sizes;
    for (auto const& pipeline : pipelines) {
        sizes.push_back(static_cast<int>(ranks_of(pipeline).size()));
    }
    return sizes;
}

/// The quickest pipelines of so many ranks, some of which still wait, unless f + 1 pipelines need them.
template <class OnlyWhenCalled = void>
result<instantiation> of_fewer_ranks(int ranks, int waiting, replanning const& known)
{
    auto const& wanted = known.wanted;
    auto const smallest = known.ready.templates.empty() ? 1 : size(known.ready.templates.front());
    auto const needed = std::min(wanted.failures + 1, ranks / smallest) * smallest;
    waiting = std::min(waiting, ranks - needed);
    auto answer = instantiate(known.ready, {ranks - waiting, wanted.failures, wanted.microbatches});
    if (!answer && waiting > 0) {
        waiting = 0;
        answer = instantiate(known.ready, {ranks, wanted.failures, wanted.microbatches});
    }
    if (answer) {
        answer->spares += waiting;
        answer->degraded = ranks / smallest < wanted.failures + 1;
    }
    return answer;
}

}  // namespace detail

/// The time of a step by the templates' costs; none where a pipeline is no template's.
template <class OnlyWhenCalled = void>
std::optional<seconds> step_of(array_view<pipeline_instance const> pipelines, array_view<int const> shares, template_set_value const& ready)
{
    auto const sizes = sizes_of(ready);
    std::optional<seconds> longest;
    for (std::size_t p = 0; p < pipelines.size(); ++p) {
        auto const ranks = ranks_of(pipelines[p]);
        auto const n = static_cast<int>(ranks.size());
        if (std::find(sizes.begin(), sizes.end(), n) == sizes.end() || make_instance(template_of_size(ready, n), ranks) != pipelines[p]) {
            return std::nullopt;
        }
        longest = std::max(longest.value_or(seconds{}), time_of(template_of_size(ready, n).cost, shares[p]));
    }
    return longest;
}

/// What follows the loss of these ranks at once. @param known make_replanning of the job
template <class OnlyWhenCalled = void>
loss_outcome outcome_of(array_view<rank_id const> lost, plan const& p, replanning const& known, membership_rules rules)
{
    loss_outcome outcome{.lost = {lost.begin(), lost.end()}};
    auto left = ranks_of(p);
    std::erase_if(left, [&](rank_id rank) { return std::find(lost.begin(), lost.end(), rank) != lost.end(); });
    auto const survivors = holdings_under(p, left, known.cells_per_layer, known.optimizer);
    std::vector<int> holders(static_cast<std::size_t>(known.layers));
    for (auto const& survivor : survivors) {
        for (auto const l : survivor.layers) {
            ++holders[at(l)];
        }
    }
    if (auto const gone = std::find(holders.begin(), holders.end(), 0); gone != holders.end()) {
        outcome.only_copy = layer_of_cell(layer_id{static_cast<int>(gone - holders.begin())}, known.cells_per_layer);
    } else {
        outcome.next = plan_membership(survivors, p.pipelines, {}, known, rules);
        outcome.step = known.regroup ? (outcome.next.time.count > 0 ? std::optional{outcome.next.time} : std::nullopt)
                                     : step_of(outcome.next.pipelines, outcome.next.shares, known.ready);
    }
    return outcome;
}

namespace detail {

template <class OnlyWhenCalled = void>
pair_outcomes outcomes_of_pairs(plan const& p, array_view<rank_id const> ranks, replanning const& known, membership_rules rules)
{
    pair_outcomes all;
    for (std::size_t a = 0; a < ranks.size(); ++a) {
        for (std::size_t b = a + 1; b < ranks.size(); ++b) {
            rank_id const lost[] = {ranks[a], ranks[b]};
            auto const outcome = outcome_of(lost, p, known, rules);
            ++all.pairs;
            ++(outcome.only_copy ? all.state_lost : !outcome.next.error.empty() ? all.too_few : outcome.next.degraded ? all.fewer : all.as_wanted);
            all.most_copied = std::max(all.most_copied, outcome.next.copies.certificate.moved.value);
        }
    }
    return all;
}

/// What distinguishes the loss of ranks from other losses, but for their numbers: their places, the pipelines around them, and how those lie in nodes.
template <class OnlyWhenCalled = void>
std::vector<int> kind_of_loss(array_view<rank_id const> lost, plan const& p, array_view<rank_place const> places, int node_size)
{
    std::vector<int> kind;
    for (auto const rank : lost) {
        auto const here = places_of(places, rank);
        kind.push_back(static_cast<int>(here.size()));
        if (here.empty()) {
            continue;
        }
        auto const& pipeline = p.pipelines[here[0].pipeline];
        auto const first = pipeline.stages.front().front().value;
        kind.insert(kind.end(), {rank.value - first, first % node_size, first - lost.front().value, static_cast<int>(p.work[here[0].pipeline].size())});
        auto const around = kind_of(pipeline);
        kind.insert(kind.end(), around.begin(), around.end());
    }
    return kind;
}

/// The outcome of each loss; where there are many ranks, one of those that are alike.
template <class OnlyWhenCalled = void>
std::vector<loss_outcome> outcomes_of(std::vector<std::vector<rank_id>> const& losses, bool each, plan const& p, replanning const& known,
                                      membership_rules rules)
{
    std::vector<loss_outcome> outcomes;
    std::map<std::vector<int>, std::size_t> seen;
    auto const places = places_in(p.pipelines);
    for (auto const& lost : losses) {
        if (!each) {
            auto const [place, is_new] = seen.emplace(kind_of_loss(lost, p, places, rules.node_size), outcomes.size());
            if (!is_new) {
                ++outcomes[place->second].alike;
                continue;
            }
        }
        outcomes.push_back(outcome_of(lost, p, known, rules));
    }
    return outcomes;
}

}  // namespace detail

/// What the plan leads to. @pre plan_error finds nothing; request.tensor is not 0; a measured profile has the times of sharing a layer between the devices
/// of a node
template <class OnlyWhenCalled = void>
forecast make_forecast(plan const& p, model_description const& model, planning_request const& request, forecast_options const& options = {})
{
    auto const ranks = ranks_of(p);
    auto const all = static_cast<int>(ranks.size());
    bool const each = all <= most_ranks_looked_at_alone;
    auto const known = make_replanning(model, request, all);
    auto rules = membership_rules_of(request);
    rules.node_size = std::max(rules.node_size, options.node_size);
    auto const smallest = known.ready.templates.empty() ? request.min_ranks : size(known.ready.templates.front());
    auto const layers = planned_layers(model, request, options.node_size);
    std::vector<int> shares;
    for (auto const& work : p.work) {
        shares.push_back(static_cast<int>(work.size()));
    }

    forecast answer{.microbatches = even_share(request), .node_size = rules.node_size, .profile = request.profile_name};
    if (known.regroup) {
        auto const time = time_of_step(p, model, request);
        answer.step = time;
        answer.parts = parts_of_step(p, model, request, time);
    } else {
        answer.step = step_of(p.pipelines, shares, known.ready);
        if (answer.step && p.recompute != plan_recompute{}) {
            answer.step = time_of_step(p, model, request);
        }
    }
    auto const device_memory = options.device_memory ? options.device_memory : request.memory_limit;
    answer.templates = templates_for(layers, request, {smallest, all}, 1, device_memory);
    if (options.node_size > 1 && all >= options.node_size) {
        answer.node_templates = templates_for(layers, request, {1, all / options.node_size}, options.node_size, device_memory);
    }
    if (!known.regroup) {  // templates are of single ranks
        answer.instantiations.emplace_back(all, instantiation{.sizes = detail::ranks_of_each(p.pipelines),
                                                              .shares = shares,
                                                              .spares = static_cast<int>(p.spares.size()),
                                                              .degraded = static_cast<int>(p.pipelines.size()) < known.wanted.failures + 1,
                                                              .time = answer.step.value_or(seconds{})});
        for (int fewer = 1; fewer < all; fewer = each ? fewer + 1 : 2 * fewer) {
            auto const waiting = std::max(0, static_cast<int>(p.spares.size()) - fewer);
            answer.instantiations.emplace_back(all - fewer, detail::of_fewer_ranks(all - fewer, waiting, known));
        }
    }
    auto const places = places_in(p.pipelines);
    for (auto const rank : ranks) {
        if (!places_of(places, rank).empty()) {
            answer.memory.push_back({rank, memory_parts_of(p, model, request.microbatch, request.policy, rank)});
        }
    }
    auto const held = holdings_under(p, ranks, known.cells_per_layer, known.optimizer);
    auto const nodes = nodes_of(held, rules.node_size);
    answer.as_it_stands = survivability_of(held, tensor_bytes_of(known.state, known.formats), nodes);
    std::vector<std::vector<rank_id>> single;
    std::vector<std::vector<rank_id>> whole;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        single.push_back({ranks[r]});
        if (r == 0 || nodes[r] != nodes[r - 1]) {
            whole.emplace_back();
        }
        whole.back().push_back(ranks[r]);
    }
    answer.ranks = detail::outcomes_of(single, each, p, known, rules);
    if (rules.node_size > 1) {
        answer.nodes = detail::outcomes_of(whole, each, p, known, rules);
    }
    constexpr std::size_t most_ranks_for_pairs = 32;
    if (ranks.size() > 2 && ranks.size() <= most_ranks_for_pairs) {
        answer.pairs = detail::outcomes_of_pairs(p, ranks, known, rules);
    }
    return answer;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template forecast make_forecast<>(plan const&, model_description const&, planning_request const&, forecast_options const&);
#endif

}  // namespace rheo::inline v0
