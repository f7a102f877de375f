// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/planning.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/config/schedule_file.hpp"
#include "executor/plan/job_templates.hpp"
#include "executor/plan/plan_report.hpp"
#include "rheo/pipeline/arranged_by_nodes.hpp"
#include "rheo/pipeline/instantiate.hpp"
#include "rheo/plan/memory_plan.hpp"
#include "rheo/plan/pipeline_schedule.hpp"
#include "rheo/schedule/families/schedule_form.hpp"
#include "rheo/schedule/transform/recomputation.hpp"
#include "rheo/topology/microbatch_set.hpp"

namespace rheo::inline v0 {

namespace {

/// Cuts the pipelines as the config says. Returns why that cannot be.
std::string cut_by_hand(std::vector<pipeline_instance>& pipelines, std::vector<int> const& layers_of_stages, int layers)
{
    std::size_t stages = 0;
    for (auto const& pipeline : pipelines) {
        stages += static_cast<std::size_t>(stage_count(pipeline.cuts));
    }
    if (layers_of_stages.size() != stages) {
        return fmt::format("plan.layers = {} must name the layers of {} stages, not of {}", layers_of_stages, stages, layers_of_stages.size());
    }
    auto next = layers_of_stages.begin();
    for (std::size_t p = 0; p < pipelines.size(); ++p) {
        auto& cuts = pipelines[p].cuts;
        for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
            cuts[s + 1] = layer_id{cuts[s].value + *next++};
        }
        if (cuts.back().value != layers) {
            return fmt::format("plan.layers = {} gives pipeline {} {} layers, but the model has {}", layers_of_stages, p, cuts.back().value, layers);
        }
    }
    return {};
}

/// Which rank would hold more than plan.memory_mib; empty when none does.
std::string over_memory(plan const& p, model_description const& model, run_config const& config, int ranks)
{
    auto const limit = memory_limit(config);
    for (int rank = 0; limit && rank < ranks; ++rank) {
        auto parts = memory_parts_of(p, model, config, rank_id{rank});
        parts.workspace = {};
        if (auto const place = position_of(p, rank_id{rank}); place.found && config.plan.recompute == recompute_policy::selective) {
            auto const recompute_levels = recompute_levels_at(p, place);
            memory_plan const as_planned{.parts = parts, .recompute_levels = {recompute_levels.begin(), recompute_levels.end()}, .available = *limit};
            if (!as_planned.fits()) {
                return fmt::format("{} of state and activations; plan.memory_mib = {:g} cannot be kept", message_of(as_planned, fmt::format("rank {}", rank)),
                                   config.plan.memory_mib);
            }
            continue;
        }
        if (auto const needed = total(parts); needed > *limit) {
            auto const largest = largest_of(parts);
            return fmt::format("rank {} would hold {:.2f} MiB of state and activations{}, but plan.memory_mib is {:g}; the largest part is {:.2f} MiB of {}",
                               rank, in_mebibytes(needed), config.plan.recompute == recompute_policy::automatic ? " with full recomputation" : "",
                               config.plan.memory_mib, in_mebibytes(largest.size), largest.name);
        }
    }
    return {};
}

/// Pipelines of whole nodes in place of those of the planner's choice, if they survive more losses of nodes and there are enough of them.
std::optional<recomposition> of_whole_nodes(template_set_value const& ready, run_config const& config, int ranks, std::span<pipeline_instance const> chosen)
{
    if (config.plan.node_size == 1 || !config.plan.pipelines.empty()) {
        return std::nullopt;
    }
    std::vector<rank_holdings> members;
    for (rank_id r{0}; r.value < ranks - config.plan.spares; ++r) {
        members.push_back({r, {}, {}, {}});
    }
    auto const nodes = nodes_of(members, config.plan.node_size);
    std::vector<tensor_bytes> layers;
    for (layer_id l{0}; l < ready.templates.front().cuts.back(); ++l) {
        layers.push_back({{l}, bytes{1}});
    }
    auto const lost_at = [&](std::vector<pipeline_instance> const& pipelines) {
        return survivability_of(holdings_in({.pipelines = pipelines}, members), layers, nodes).nodes;
    };
    auto const now = lost_at({chosen.begin(), chosen.end()});
    if (now >= config.plan.failures) {
        return std::nullopt;
    }
    auto whole = recompose_nodes(members, nodes, config.plan.node_size, ready, {}, {config.plan.failures, config.train.microbatches});
    return whole && lost_at(whole.pipelines) > now ? std::optional{std::move(whole)} : std::nullopt;
}

}  // namespace

std::vector<pipeline_instance> pipelines_of_sizes(template_set_value const& ready, std::span<int const> sizes)
{
    std::vector<pipeline_instance> pipelines;
    int next = 0;
    for (auto const n : sizes) {
        std::vector<rank_id> ranks;
        for (int position = 0; position < n; ++position) {
            ranks.push_back(rank_id{next++});
        }
        pipelines.push_back(make_instance(template_of_size(ready, n), ranks));
    }
    return pipelines;
}

first_plan make_first_plan(model_description const& model, run_config const& config, int ranks)
{
    first_plan result{.what = {.schedule = config.plan.schedule,
                               .pipelines = {},
                               .work = {},
                               .spares = {},
                               .recompute = config.plan.recompute == recompute_policy::always,
                               .own = own_schedule(config.plan),
                               .slices = config.train.microbatch.slices}};
    if (result.error = layer_profile_error(model, config); !result) {
        return result;
    }
    auto const layers = static_cast<int>(model.layers.size());
    bool const alone = ranks - config.plan.spares == 1 || config.plan.pipelines.size() == 1;
    auto const limit = config.plan.layers.empty() ? memory_limit(config) : std::nullopt;  // what is cut by hand is judged as it is
    auto const ready = ready_templates(model, config, ranks, limit, alone ? 1 : 2);
    auto sizes = config.plan.pipelines;
    auto shares = config.plan.shares;
    if (sizes.empty()) {
        auto const chosen = instantiate(ready, {ranks - config.plan.spares, config.plan.failures, config.train.microbatches});
        if (!chosen) {
            result.error =
                config.plan.min_ranks > layers
                    ? fmt::format("a pipeline of plan.min_ranks = {} ranks cannot be cut from a model of {} layers", config.plan.min_ranks, layers)
                : ready.templates.empty() && memory_limit(config)
                    ? fmt::format("no pipeline of at most {} rank{} keeps within plan.memory_mib = {:g}", ranks, ranks == 1 ? "" : "s", config.plan.memory_mib)
                    : chosen.error;
            return result;
        }
        sizes = chosen.sizes;
        shares = chosen.shares;
        result.degraded = chosen.degraded;
    } else {
        result.degraded = static_cast<int>(sizes.size()) < config.plan.failures + 1;
    }
    for (auto const n : sizes) {
        if (n > layers) {
            result.error = fmt::format("a pipeline of {} ranks cannot be cut from a model of {} layers", n, layers);
            return result;
        }
        if (auto const made = sizes_of(ready); std::find(made.begin(), made.end(), n) == made.end()) {
            result.error = fmt::format("no pipeline of {} ranks keeps within plan.memory_mib = {:g}", n, config.plan.memory_mib);
            return result;
        }
    }
    auto const costs = costs_of_sizes(ready, sizes);
    if (shares.empty()) {
        auto split = split_batch(costs, config.train.microbatches);
        expects(split.unplaced == 0, "a template has memory for an even share");
        shares = std::move(split.shares);
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        result.time = std::max(result.time, time_of(costs[i], shares[i]));
    }
    result.what.pipelines = pipelines_of_sizes(ready, sizes);
    if (!config.plan.layers.empty()) {
        result.error = cut_by_hand(result.what.pipelines, config.plan.layers, layers);
        if (!result.error.empty()) {
            return result;
        }
    }
    if (config.plan.node_size > 1 && !config.plan.pipelines.empty()) {
        result.what.pipelines = arranged_by_nodes(std::move(result.what.pipelines), config.plan.node_size, config.plan.failures + 1);
    }
    if (auto whole = of_whole_nodes(ready, config, ranks, result.what.pipelines)) {
        result.what.pipelines = std::move(whole->pipelines);
        shares = std::move(whole->shares);
        result.time = whole->time;
    }
    result.what.work = deal(shares);
    for (rank_id r{0}; r.value < ranks; ++r) {
        if (!position_of(result.what, r).found) {
            result.what.spares.push_back(r);
        }
    }
    choose_recomputation(result.what, model, config);
    result.error = over_memory(result.what, model, config, ranks);
    return result;
}

namespace {

/// What each rank's layers drop, so that it keeps within the limit.
void choose_layers(plan& p, model_description const& model, run_config const& config, bytes limit)
{
    p.recompute_levels.clear();
    bool some = false;
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const compute = rheo::schedule_of(p, i).compute;
        auto const terms = terms_in(p, config);
        p.recompute_levels.emplace_back();
        for (int position = 0; position < static_cast<int>(compute.rows.size()); ++position) {
            auto const workspace = rank_flow_at(model, p.pipelines[i], compute, position, terms).workspace;  // comes on top of the limit
            auto const chosen = plan_memory(model, p.pipelines[i], compute, position, terms, limit + workspace);
            p.recompute_levels.back().push_back(chosen.recompute_levels);
            some = some || layers_at_level(chosen, recompute_level::none) < static_cast<int>(chosen.recompute_levels.size());
        }
    }
    if (!some) {
        p.recompute_levels.clear();
    }
}

}  // namespace

void choose_recomputation(plan& p, model_description const& model, run_config const& config)
{
    auto const limit = memory_limit(config);
    if (config.plan.recompute == recompute_policy::selective && limit) {
        choose_layers(p, model, config, *limit);
        return;
    }
    if (config.plan.recompute != recompute_policy::automatic || !limit) {
        return;
    }
    p.recompute = false;
    p.recomputed.clear();
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const held = held_by_stages(model, p.pipelines[i], terms_in(p, config));
        std::vector<bytes> caps;
        for (auto const rank : ranks_of(p.pipelines[i])) {
            caps.push_back(*limit - state_bytes_of(p, model, config, rank));
        }
        p.recomputed.push_back(recomputation_under(rheo::schedule_of(p, i).compute, held, caps).stages);
        for (bool const marked : p.recomputed.back()) {
            p.recompute = p.recompute || marked;
        }
    }
    if (!p.recompute) {
        p.recomputed.clear();
    }
}

int stages_per_rank(plan_config const& config, int ranks)
{
    auto const found = schedule_of(config);
    expects(static_cast<bool>(found), "the config names a schedule that is not known");
    int most = 1;  // pipelines that are not of the family have one
    for (int n : {2, ranks}) {
        if (auto const form = found.schedule->operator->()->microbatches == 0 || n == ranks ? form_of(*found.schedule, n) : possible_form{}) {
            most = std::max(most, (static_cast<int>(form->where.positions.size()) + n - 1) / n);
        }
    }
    return most;
}

std::string over_device(plan const& p, model_description const& model, run_config const& config, rank_id rank, bytes kernels, bytes free)
{
    auto parts = memory_parts_of(p, model, config, rank);
    parts.workspace += kernels;
    if (total(parts) <= free) {
        return {};
    }
    auto const largest = largest_of(parts);
    return fmt::format(
        "rank {} would hold {:.0f} MiB, but its device has {:.0f} MiB free; the largest part is {:.0f} MiB of {}. Plans keep within plan.memory_mib, "
        "where it is said",
        rank.value, in_mebibytes(total(parts)), in_mebibytes(free), in_mebibytes(largest.size), largest.name);
}

membership_rules rules_of(run_config const& config) { return {.node_size = config.plan.node_size, .reserved_spares = config.plan.spares}; }

replanning what_ranks_know(model_description const& model, collection const& state, run_config const& config, int ranks)
{
    return {.state = state,
            .layers = static_cast<int>(model.layers.size()),
            .ready = ready_templates(model, config, ranks, memory_limit(config)),
            .wanted = {.failures = config.plan.failures,
                       .microbatches = config.train.microbatches,
                       .losses = {.mtbf = {config.plan.mtbf_h * 3600.0}, .copy_rate = link_between_ranks.bandwidth}},
            .element_bytes = bytes{committed_bytes_per_parameter},
            .round_budget = mebibytes(256),
            .slices = config.train.microbatch.slices};
}

std::string plan_error(plan const& p, model_description const& model, run_config const& config, int ranks)
{
    auto const layers = static_cast<std::int32_t>(model.layers.size());
    if (auto error = layer_profile_error(model, config); !error.empty()) {
        return error;
    }
    if (!p.own) {
        if (auto error = parse_schedule(p.schedule).error; !error.empty()) {
            return error;
        }
    }
    if (auto const slices = config.train.microbatch.slices; p.slices != slices) {
        return fmt::format("the plan is for microbatches in {} slice{}, train.slices is {}", p.slices, p.slices == 1 ? "" : "s", slices);
    }
    if (p.pipelines.empty() || p.pipelines.size() != p.work.size()) {
        return "a plan needs at least one pipeline";
    }
    std::vector<int> seen(static_cast<std::size_t>(ranks));
    auto const place = [&](rank_id rank) { return rank.value >= 0 && rank.value < ranks && ++seen[at(rank)] == 1; };
    for (auto const& pipeline : p.pipelines) {
        if (!are_cuts(pipeline.cuts) || pipeline.cuts.back() != layer_id{layers}) {
            return fmt::format("the cuts of a pipeline must ascend from 0 to the {} layers of the model", layers);
        }
        if (pipeline.stages.empty() || pipeline.stages.size() % (pipeline.cuts.size() - 1) != 0) {
            return "a pipeline needs one rank for each stage between its cuts";
        }
        for (auto const& stage : pipeline.stages) {
            if (stage.size() != 1) {
                return "a stage of several devices can be planned but not run yet: a stage has one rank";
            }
        }
        for (auto const rank : ranks_of(pipeline)) {
            if (!place(rank)) {
                return fmt::format("the plan names rank {} twice, or it is none of the {} ranks that are started", rank.value, ranks);
            }
        }
    }
    for (auto const rank : p.spares) {
        if (!place(rank)) {
            return fmt::format("the plan names rank {} twice, or it is none of the {} ranks that are started", rank.value, ranks);
        }
    }
    if (auto const missing = std::find(seen.begin(), seen.end(), 0); missing != seen.end()) {
        return fmt::format("the plan has no place for rank {} of {}; a rank without work stands among the spares", missing - seen.begin(), ranks);
    }
    microbatch_set done;
    int count = 0;
    for (auto const& list : p.work) {
        for (auto const w : list) {
            if (w.microbatch.value < 0 || w.microbatch.value >= config.train.microbatches || w.deepest != layer_id{0} || done.contains(w.microbatch)) {
                return fmt::format("the plan must name each of the {} microbatches of a step once and whole", config.train.microbatches);
            }
            done.insert(w.microbatch);
            ++count;
        }
    }
    if (count != config.train.microbatches) {
        return fmt::format("the plan must name each of the {} microbatches of a step once and whole", config.train.microbatches);
    }
    return over_memory(p, model, config, ranks);
}

}  // namespace rheo::inline v0
