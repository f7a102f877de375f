// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/plan_report.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/plan/equal_pipelines.hpp"
#include "executor/plan/plan_tables.hpp"
#include "executor/plan/planning.hpp"
#include "executor/plan/text_table.hpp"
#include "rheo/model/exchange_traffic.hpp"
#include "rheo/model/footprint.hpp"
#include "rheo/model/grid.hpp"
#include "rheo/model/state.hpp"
#include "rheo/plan/programs.hpp"
#include "rheo/planner/make_forecast.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/draw/draw.hpp"
#include "rheo/tensor/digest.hpp"

namespace rheo::inline v0 {

namespace {

std::string_view plural(std::int64_t count) { return count == 1 ? "" : "s"; }

std::string format_layers(layer_span span, model_description const& model)
{
    std::string text;
    for (auto l = span.begin; l < span.end;) {
        auto const name = model.layers[at(l)].name;
        auto const first = l;
        while (l < span.end && model.layers[at(l)].name == name) {
            ++l;
        }
        auto const count = l.value - first.value;
        text += fmt::format("{}{}", text.empty() ? "" : ", ", count == 1 ? std::string{name} : fmt::format("{} x {}", count, name));
    }
    return text;
}

std::string format_stages(std::vector<bool> const& marks)
{
    std::vector<std::size_t> marked;
    for (std::size_t s = 0; s < marks.size(); ++s) {
        if (marks[s]) {
            marked.push_back(s);
        }
    }
    return marked.empty() ? "none of its stages" : fmt::format("{} of its {} stages: {}", marked.size(), marks.size(), fmt::join(marked, ", "));
}

/// "1.00 master parameters, 2.00 moments, ..., 0.50 to work in besides", in MiB.
std::string format_parts(memory_parts const& parts)
{
    std::string text;
    for (auto const& part : named_parts(parts)) {
        if (part.size > bytes{}) {
            text += fmt::format("{}{:.2f} {}", text.empty() ? "" : ", ", in_mebibytes(part.size), part.name == "workspace" ? "to work in besides" : part.name);
        }
    }
    return text;
}

/// "cheap parts of layers 1, 2, 3; all of layer 4"; empty when nothing is.
std::string format_recompute(std::span<recompute_level const> recompute_levels)
{
    std::string text;
    for (auto const& [how, f] : {std::pair{recompute_level::cheap, "cheap parts"}, {recompute_level::full, "all"}}) {
        std::vector<std::size_t> layers;
        for (std::size_t l = 0; l < recompute_levels.size(); ++l) {
            if (recompute_levels[l] == how) {
                layers.push_back(l);
            }
        }
        if (!layers.empty()) {
            text += fmt::format("{}{} of layer{} {}", text.empty() ? "" : "; ", f, plural(std::ssize(layers)), fmt::join(layers, ", "));
        }
    }
    return text;
}

/// "shards 0, 1 of 4, receives 0.75 MiB for a microbatch from ranks 2, 3"; empty where a rank has its stages alone.
std::string format_share(plan const& p, rank_id rank, model_description const& model, run_config const& config)
{
    auto const place = position_of(p, rank);
    auto const& pipeline = p.pipelines[at(place.pipeline)];
    auto const ranks = groups_of(pipeline)[static_cast<std::size_t>(place.position)];
    if (ranks.size() == 1) {
        return {};
    }
    auto const grid = grid_of(model);
    auto const group = group_at(pipeline, place.position, grid, place.member);
    bytes received;
    for (auto const span : layers_of(pipeline, rank)) {
        received += received_bytes(array_view{model.layers}.subspan(at(span.begin), static_cast<std::size_t>(size(span))), config.train.microbatch,
                                   policy_of(config), group);
    }
    std::vector<std::int64_t> shards;
    for (auto shard = group.run(grid).begin; shard < group.run(grid).end; ++shard) {
        shards.push_back(shard);
    }
    std::vector<int> others;
    for (auto const other : ranks) {
        if (other != rank) {
            others.push_back(other.value);
        }
    }
    return fmt::format("shard{} {} of {}, receives {:.2f} MiB {} from rank{} {}", plural(std::ssize(shards)), fmt::join(shards, ", "), grid,
                       in_mebibytes(received), config.train.microbatch.slices > 1 ? "for a slice" : "for a microbatch", plural(std::ssize(others)),
                       fmt::join(others, ", "));
}

/// Characters of a drawn line, where there are many pipelines.
constexpr std::size_t most_drawn = 200;

}  // namespace

std::string drawing_of(plan const& p)
{
    std::string text;
    for (auto const& kind : kinds_of_pipelines(p)) {
        auto const i = kind.front();
        if (p.work[i].empty()) {
            continue;
        }
        auto const schedule = schedule_of(p, i);
        text += fmt::format("pipeline {}{}{}\n", i, kind.size() == 1 ? "" : fmt::format(", and {} like it", kind.size() - 1),
                            schedule.error.empty() ? "" : fmt::format(": {}", name_of(schedule)));
        auto const drawn = draw(schedule.compute);
        bool const fits = p.pipelines.size() <= most_listed || drawn.find('\n') <= most_drawn;
        text += fits ? drawn : fmt::format("  {} microbatches are too many to draw\n", p.work[i].size());
    }
    return text;
}

std::string after_loss_of(rank_id lost, plan const& p, model_description const& model, run_config const& config)
{
    auto const known = make_replanning(model, config, static_cast<int>(ranks_of(p).size()));
    return message_of(outcome_of(array_view{&lost, 1}, p, known, membership_rules_of(config)));
}

std::string format_plan(plan const& p, model_description const& model, run_config const& config, forecast const& f)
{
    auto const state = state_of(model);
    std::int64_t parameters = 0;
    for (auto const& tensor : state.tensors) {
        parameters += tensor.is_parameter ? elements(tensor.shape) : 0;
    }
    auto const shape = config.train.microbatch;
    auto text = fmt::format("model      {} layers, {} parameters\nstep       {} microbatches of {} sequences x {} tokens{}\n", model.layers.size(), parameters,
                            config.train.microbatches, shape.sequences, shape.tokens, shape.slices > 1 ? fmt::format(" in {} slices", shape.slices) : "");
    bool const dropped = config.plan.recompute == recompute_policy::selective;
    if (!has_groups(p)) {  // templates are of single ranks
        text += fmt::format("\ntemplates ({}, at {} microbatches{})\n", source_of(f), f.microbatches, dropped ? "; the fullest with full recomputation" : "");
        text += format_templates(f.templates, "ranks", f.microbatches, config.train.microbatches);
        if (!f.node_templates.empty()) {
            text += fmt::format("\ntemplates of whole nodes of {} devices (planned and priced; plan.tensor sets how many ranks share a stage)\n", f.node_size);
            text += format_templates(f.node_templates, "nodes", f.microbatches, config.train.microbatches);
        }
        text += fmt::format("\nwhat ranks run ({} pipeline{} wanted; the plan, and the quickest of fewer ranks; steps {})\n", config.plan.failures + 1,
                            plural(config.plan.failures + 1), source_of(f));
        text += format_instantiations(f);
    }

    text += fmt::format("\nplan       {}, schedule {}{}, {}, digest {}\n", format_sizes(p.pipelines), name_of(p.schedule),
                        p.recompute.every_stage ? " with activations recomputed" : "",
                        f.step ? "a step of " + format_step(f.step) : "a step whose time is not modelled", to_string(digest_of(p)));
    if (f.parts) {
        text += fmt::format("  of the ranks' time {:.0f} % is computation, {:.0f} % exchanges in groups, {:.0f} % waiting ({})\n", 100 * f.parts->computing,
                            100 * f.parts->exchanging, 100 * f.parts->waiting, source_of(f));
    }
    if (p.optimizer.are_used()) {
        text += fmt::format("  {} of the ranks that hold a layer keep{} its {}moments\n", p.optimizer.copies, p.optimizer.copies == 1 ? "s" : "",
                            policy_of(config).stores_apart() ? "master parameters and " : "");
    }
    for (auto const& kind : kinds_of_pipelines(p, f.memory)) {
        auto const i = kind.front();
        text += fmt::format("  pipeline {}{}: {} of {} microbatches\n", i, kind.size() == 1 ? "" : fmt::format(", and {} like it", kind.size() - 1),
                            p.work[i].size(), config.train.microbatches);
        if (auto const schedule = schedule_of(p, i); !schedule.error.empty()) {
            text += fmt::format("    schedule {}: {}\n", schedule.family ? name_of(schedule) : "in an order by list scheduling", schedule.error);
        }
        if (!p.recompute.stages.empty()) {
            text += fmt::format("    activations are recomputed by {}\n", format_stages(recomputed_stages(p, i)));
        }
        for (auto const rank : ranks_of(p.pipelines[i])) {
            std::vector<std::string> numbers, names;
            for (auto const span : layers_of(p, rank)) {
                numbers.push_back(fmt::format("{}..{}", span.begin.value, span.end.value - 1));
                names.push_back(format_layers(span, model));
            }
            auto const& parts = memory_of(f.memory, rank);
            text += fmt::format("    rank {:<4}{:>9.2f} MiB   layers {}: {}\n", rank.value, in_mebibytes(needed_bytes(parts)), fmt::join(numbers, ", "),
                                fmt::join(names, "; "));
            if (auto const shared = format_share(p, rank, model, config); !shared.empty()) {
                text += fmt::format("                            {}\n", shared);
            }
            text += fmt::format("                            {}\n", format_parts(parts));
            if (auto const recompute_levels = format_recompute(recompute_levels_at(p, position_of(p, rank))); !recompute_levels.empty()) {
                text += fmt::format("                            recomputes {}\n", recompute_levels);
            }
        }
    }
    if (p.spares.size() <= most_listed) {
        for (auto const rank : p.spares) {
            text += fmt::format("  rank {} is a spare\n", rank.value);
        }
    } else {
        std::vector<int> spares;
        for (auto const rank : p.spares) {
            spares.push_back(rank.value);
        }
        text += fmt::format("  ranks {} are spares\n", format_numbers(spares));
    }

    auto const verdict =
        deadlock_free<rendezvous>(programs_of(p, reduction_units(state, static_cast<int>(model.layers.size())), static_cast<int>(model.layers.size())));
    text += verdict ? "  checked: with all transfers and reductions, no rank waits for ever, even if every send waits for its receive\n"
                    : fmt::format("  {}\n", verdict.message());

    text += "\n" + drawing_of(p);
    text += fmt::format("\nas it stands, {}\nafter a loss, by plan.mtbf_h = {:g} (steps {})\n", to_string(f.as_it_stands), in_hours(config.plan.mtbf),
                        source_of(f));
    text += format_outcomes(f);
    return text + (f.pairs ? format_pairs(*f.pairs) : "");
}

}  // namespace rheo::inline v0
