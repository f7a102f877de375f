// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/forecast.hpp"

#include <algorithm>
#include <cstddef>

#include "executor/plan/job_templates.hpp"
#include "executor/plan/plan_report.hpp"
#include "executor/plan/planning.hpp"
#include "rheo/model/state.hpp"
#include "rheo/recover/replan.hpp"

namespace rheo::inline v0 {

namespace {

/// The layers that each rank of a plan holds, in the order of `ranks`, without those that are lost.
std::vector<rank_holdings> holdings_of(plan const& p, std::span<rank_id const> ranks, std::span<rank_id const> lost)
{
    std::vector<rank_holdings> result;
    for (auto const rank : ranks) {
        if (std::find(lost.begin(), lost.end(), rank) == lost.end()) {
            result.push_back({rank, {}, {}, {}});
            result.back().layers = layers_in(layers_of(p, rank));
        }
    }
    return result;
}

std::vector<int> sizes_of(std::span<pipeline_instance const> pipelines)
{
    std::vector<int> sizes;
    for (auto const& pipeline : pipelines) {
        sizes.push_back(static_cast<int>(ranks_of(pipeline).size()));
    }
    return sizes;
}

/// The quickest pipelines of so many ranks, some of which still wait, unless f + 1 pipelines need them.
instantiation of_fewer_ranks(int ranks, int waiting, replanning const& known)
{
    auto const& wanted = known.wanted;
    auto const smallest = known.ready.templates.empty() ? 1 : size(known.ready.templates.front());
    auto const needed = std::min(wanted.failures + 1, ranks / smallest) * smallest;
    waiting = std::min(waiting, ranks - needed);
    auto result = instantiate(known.ready, {ranks - waiting, wanted.failures, wanted.microbatches});
    if (!result && waiting > 0) {
        waiting = 0;
        result = instantiate(known.ready, {ranks, wanted.failures, wanted.microbatches});
    }
    result.spares += waiting;
    result.degraded = ranks / smallest < wanted.failures + 1;
    return result;
}

pair_outcomes outcomes_of_pairs(plan const& p, std::span<rank_id const> ranks, replanning const& known, membership_rules rules)
{
    pair_outcomes all;
    for (std::size_t a = 0; a < ranks.size(); ++a) {
        for (std::size_t b = a + 1; b < ranks.size(); ++b) {
            rank_id const lost[] = {ranks[a], ranks[b]};
            auto const outcome = outcome_of(lost, p, known, rules);
            ++all.pairs;
            ++(outcome.only_copy ? all.state_lost : !outcome.next.error.empty() ? all.too_few : outcome.next.degraded ? all.fewer : all.as_wanted);
            all.most_copied = std::max(all.most_copied, outcome.next.moved);
        }
    }
    return all;
}

}  // namespace

std::vector<rank_id> ranks_of(plan const& p)
{
    std::vector<rank_id> ranks = p.spares;
    for (auto const& pipeline : p.pipelines) {
        auto const here = ranks_of(pipeline);
        ranks.insert(ranks.end(), here.begin(), here.end());
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

loss_outcome outcome_of(std::span<rank_id const> lost, plan const& p, replanning const& known, membership_rules rules)
{
    loss_outcome outcome{.lost = {lost.begin(), lost.end()}};
    auto const survivors = holdings_of(p, ranks_of(p), lost);
    std::vector<int> holders(static_cast<std::size_t>(known.layers));
    for (auto const& survivor : survivors) {
        for (auto const l : survivor.layers) {
            ++holders[at(l)];
        }
    }
    if (auto const gone = std::find(holders.begin(), holders.end(), 0); gone != holders.end()) {
        outcome.only_copy = layer_id{static_cast<int>(gone - holders.begin())};
    } else {
        outcome.next = plan_membership(survivors, p.pipelines, {}, known, rules);
        outcome.step = step_of(outcome.next.pipelines, outcome.next.shares, known.ready);
    }
    return outcome;
}

std::optional<seconds> step_of(std::span<pipeline_instance const> pipelines, std::span<int const> shares, template_set_value const& ready)
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

forecast make_forecast(plan const& p, model_description const& model, run_config const& config, plan_report_options const& options)
{
    auto const state = state_of(model);
    auto const ranks = ranks_of(p);
    auto const all = static_cast<int>(ranks.size());
    auto const known = what_ranks_know(model, state, config, all);
    auto rules = rules_of(config);
    rules.node_size = std::max(rules.node_size, options.node_size);
    auto const smallest = known.ready.templates.empty() ? 1 : size(known.ready.templates.front());
    auto const layers = planned_layers(model, config, options.node_size);
    std::vector<int> shares;
    for (auto const& work : p.work) {
        shares.push_back(static_cast<int>(work.size()));
    }

    forecast result{.microbatches = even_share(config),
                    .node_size = rules.node_size,
                    .profile = config.plan.layer_profile,
                    .step = step_of(p.pipelines, shares, known.ready)};
    auto const device_memory = options.device_memory ? options.device_memory : memory_limit(config);
    result.templates = templates_for(layers, config, {smallest, all}, 1, device_memory);
    if (options.node_size > 1 && all >= options.node_size) {
        result.node_templates = templates_for(layers, config, {1, all / options.node_size}, options.node_size, device_memory);
    }
    result.instantiations.push_back({.sizes = sizes_of(p.pipelines),
                                     .shares = shares,
                                     .spares = static_cast<int>(p.spares.size()),
                                     .degraded = static_cast<int>(p.pipelines.size()) < known.wanted.failures + 1,
                                     .time = result.step.value_or(seconds{})});
    for (int n = all - 1; n >= 1; --n) {
        result.instantiations.push_back(of_fewer_ranks(n, std::max(0, static_cast<int>(p.spares.size()) - (all - n)), known));
    }
    for (auto const rank : ranks) {
        if (position_of(p, rank).found) {
            result.memory.push_back({rank, memory_parts_of(p, model, config, rank)});
        }
    }
    auto const held = holdings_of(p, ranks, {});
    auto const nodes = nodes_of(held, rules.node_size);
    result.as_it_stands = survivability_of(held, tensor_bytes_of(state, known.element_bytes), nodes);
    for (auto const rank : ranks) {
        result.ranks.push_back(outcome_of(std::span{&rank, 1}, p, known, rules));
    }
    for (std::size_t r = 0; rules.node_size > 1 && r < ranks.size();) {
        std::vector<rank_id> lost;
        auto const node = nodes[r];
        for (; r < ranks.size() && nodes[r] == node; ++r) {
            lost.push_back(ranks[r]);
        }
        result.nodes.push_back(outcome_of(lost, p, known, rules));
    }
    constexpr std::size_t most_ranks_for_pairs = 32;
    if (ranks.size() > 2 && ranks.size() <= most_ranks_for_pairs) {
        result.pairs = outcomes_of_pairs(p, ranks, known, rules);
    }
    return result;
}

}  // namespace rheo::inline v0
