// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan_report.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rheo/model/footprint.hpp"
#include "rheo/model/state.hpp"
#include "rheo/plan/programs.hpp"
#include "rheo/recover/replan.hpp"
#include "rheo/schedule/activations.hpp"
#include "rheo/schedule/deadlock.hpp"
#include "rheo/schedule/draw.hpp"
#include "rheo/tensor/digest.hpp"
#include "runtime/planning.hpp"

namespace rheo::inline v0 {

namespace {

std::string_view plural(std::int64_t count) { return count == 1 ? "" : "s"; }

/// "2 pipelines of 2 + 3 ranks"
std::string sizes_for_people(std::vector<pipeline_instance> const& pipelines)
{
    std::vector<std::size_t> sizes;
    std::size_t sum = 0;
    for (auto const& pipeline : pipelines) {
        sizes.push_back(pipeline.stages.size());
        sum += sizes.back();
    }
    return fmt::format("{} pipeline{} of {} rank{}", sizes.size(), plural(static_cast<std::int64_t>(sizes.size())), fmt::join(sizes, " + "),
                       plural(static_cast<std::int64_t>(sum)));
}

program compute_program(plan const& p, std::size_t pipeline)
{
    auto const& cuts = p.pipelines[pipeline].cuts;
    return make_program(*parse_schedule(p.schedule).schedule, stage_count(cuts), to_stage_work(p.work[pipeline], cuts));
}

std::vector<rank_id> ranks_of(plan const& p)
{
    std::vector<rank_id> ranks = p.spares;
    for (auto const& pipeline : p.pipelines) {
        for (auto const& stage : pipeline.stages) {
            ranks.insert(ranks.end(), stage.begin(), stage.end());
        }
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

std::string layers_for_people(layer_span span, model_description const& model)
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

std::string templates_for_people(model_description const& model, run_config const& config, template_set_value const& ready)
{
    auto const times = modelled_layer_times(model, config.train.microbatch);
    seconds all;
    for (auto const time : times) {
        all += time;
    }
    auto text = fmt::format("  {:<8}{:<18}{}\n", "ranks", "slowest stage", "cuts before layers");
    for (auto const& shape : ready.templates) {
        std::vector<int> cuts;
        for (auto const cut : shape.cuts) {
            cuts.push_back(cut.value);
        }
        text += fmt::format("  {:<8}{:<18}{}\n", size(shape), fmt::format("{:.0f} % of the work", 100 * (shape.cost.per_microbatch / all)), fmt::join(cuts, " "));
    }
    return text;
}

}  // namespace

bytes memory_of(plan const& p, model_description const& model, microbatch_shape shape, rank_id rank)
{
    auto const place = position_of(p, rank);
    if (!place.found) {
        return {};
    }
    auto const span = layers_of(p, rank);
    auto const state = state_of(model);
    bytes sum;
    for (auto const tensor : tensors_of(state, span.begin, span.end)) {
        auto const& info = state.tensors[at(tensor)];
        sum += bytes{info.is_parameter ? elements(info.shape) * (committed_bytes_per_parameter + working_bytes_per_parameter) : 0};
    }
    auto const in_flight = peak_activations_by_rank(compute_program(p, at(place.pipeline)))[at(place.stage)];
    for (auto l = span.begin; l < span.end; ++l) {
        sum += activation_bytes(model.layers[at(l)], shape) * std::int64_t{in_flight};
    }
    return sum;
}

std::string drawing_of(plan const& p)
{
    std::string text;
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        if (p.work[i].empty()) {
            continue;
        }
        text += fmt::format("pipeline {}\n{}", i, draw(compute_program(p, i)));
    }
    return text;
}

std::string after_loss_of(rank_id lost, plan const& p, model_description const& model, run_config const& config)
{
    auto const state = state_of(model);
    auto const layers = static_cast<std::int32_t>(model.layers.size());
    std::vector<rank_holdings> survivors;
    std::vector<int> holders(model.layers.size());
    for (auto const rank : ranks_of(p)) {
        if (rank != lost) {
            survivors.push_back({rank, {}, {}, {}});
            auto const span = layers_of(p, rank);
            for (auto l = span.begin; l < span.end; ++l) {
                survivors.back().layers.push_back(l);
                ++holders[at(l)];
            }
        }
    }
    for (std::int32_t l = 0; l < layers; ++l) {
        if (holders[at(layer_id{l})] == 0) {
            return fmt::format("the only copy of layer {} is lost; without a checkpoint the run ends with exit code 6", l);
        }
    }
    auto const next = replan(survivors, what_ranks_know(model, state, config, static_cast<int>(survivors.size()) + 1));
    if (!next.cannot.empty()) {
        return next.cannot;
    }
    return fmt::format("{}, shares {}{}, {:.2f} MiB copied{}", sizes_for_people(next.pipelines), fmt::join(next.shares, " + "),
                       next.spares.empty() ? "" : fmt::format(", {} spare", next.spares.size()), in_mebibytes(next.moved),
                       next.degraded ? "; a further loss may not be survived" : "");
}

std::string plan_for_people(plan const& p, model_description const& model, run_config const& config)
{
    auto const state = state_of(model);
    auto const ranks = ranks_of(p);
    std::int64_t parameters = 0;
    for (auto const& tensor : state.tensors) {
        parameters += tensor.is_parameter ? elements(tensor.shape) : 0;
    }
    auto const shape = config.train.microbatch;
    auto text = fmt::format("model      {} layers, {} parameters\nstep       {} microbatches of {} sequences x {} tokens\n", model.layers.size(), parameters,
                            config.train.microbatches, shape.sequences, shape.tokens);
    text += "\ntemplates\n" + templates_for_people(model, config, ready_templates(model, config, static_cast<int>(ranks.size())));

    text += fmt::format("\nplan       {}, schedule {}, digest {}\n", sizes_for_people(p.pipelines), p.schedule, to_string(digest_of(p)));
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        text += fmt::format("  pipeline {}: {} of {} microbatches\n", i, p.work[i].size(), config.train.microbatches);
        for (auto const& stage : p.pipelines[i].stages) {
            auto const rank = stage.front();
            auto const span = layers_of(p, rank);
            text += fmt::format("    rank {:<4}{:>9.2f} MiB   layers {}..{}: {}\n", rank.value, in_mebibytes(memory_of(p, model, shape, rank)), span.begin.value,
                                span.end.value - 1, layers_for_people(span, model));
        }
    }
    for (auto const rank : p.spares) {
        text += fmt::format("  rank {} is a spare\n", rank.value);
    }

    auto const verdict = deadlock_free<rendezvous>(programs_of(p, reduction_units(state, static_cast<int>(model.layers.size())), static_cast<int>(model.layers.size())));
    text += verdict ? "  checked: with all transfers and reductions, no rank waits for ever, even if every send waits for its receive\n"
                    : fmt::format("  {}\n", verdict.sentence());

    text += "\n" + drawing_of(p);
    text += "\nafter the loss of\n";
    for (auto const rank : ranks) {
        text += fmt::format("  rank {:<4}{}\n", rank.value, after_loss_of(rank, p, model, config));
    }
    return text;
}

}  // namespace rheo::inline v0
