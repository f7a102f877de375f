// SPDX-License-Identifier: Apache-2.0
#include "runtime/foreseen.hpp"

#include <algorithm>
#include <cstddef>

#include "rheo/model/state.hpp"
#include "rheo/recover/replan.hpp"
#include "runtime/plan_report.hpp"
#include "runtime/job_templates.hpp"
#include "runtime/planning.hpp"

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

pair_outcomes outcomes_of_pairs(plan const& p, std::span<rank_id const> ranks, replanning const& known, membership_rules rules)
{
    pair_outcomes all;
    for (std::size_t a = 0; a < ranks.size(); ++a) {
        for (std::size_t b = a + 1; b < ranks.size(); ++b) {
            rank_id const lost[] = {ranks[a], ranks[b]};
            auto const outcome = outcome_of(lost, p, known, rules);
            ++all.pairs;
            ++(outcome.only_copy ? all.state_lost : !outcome.next.cannot.empty() ? all.too_few : outcome.next.degraded ? all.fewer : all.as_wanted);
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
    }
    return outcome;
}

foreseen foresee(plan const& p, model_description const& model, run_config const& config, plan_report_options const& options)
{
    auto const state = state_of(model);
    auto const ranks = ranks_of(p);
    auto const all = static_cast<int>(ranks.size());
    auto const known = what_ranks_know(model, state, config, all);
    auto rules = rules_of(config);
    rules.node_size = std::max(rules.node_size, options.node_size);
    auto const smallest = known.ready.templates.empty() ? 1 : size(known.ready.templates.front());
    auto const layers = options.layers.empty() ? modelled_layers(model, config, options.node_size) : options.layers;

    foreseen result{.microbatches = even_share(config),
                    .node_size = rules.node_size,
                    .profiled = !options.layers.empty()};
    auto const device_memory = options.device_memory ? options.device_memory : memory_limit(config);
    result.templates = templates_for(layers, config, {smallest, all}, 1, device_memory);
    if (options.node_size > 1 && all >= options.node_size) {
        result.node_templates = templates_for(layers, config, {1, all / options.node_size}, options.node_size, device_memory);
    }
    for (int n = all; n >= 1; --n) {
        result.instantiations.push_back(instantiate(known.ready, {n, known.wanted.failures, known.wanted.microbatches}));
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
