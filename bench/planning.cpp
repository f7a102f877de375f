// SPDX-License-Identifier: Apache-2.0
// What planning takes, and how it grows with layers, ranks and templates: cuts for both objectives, instantiation, repairs,
// recomposition and copies after a loss.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>

#include "rheo/model/state.hpp"
#include "rheo/partition/estimate_split.hpp"
#include "rheo/partition/optimal_estimate.hpp"
#include "rheo/partition/optimal_makespan.hpp"
#include "rheo/pipeline/instantiate.hpp"
#include "rheo/pipeline/membership.hpp"
#include "rheo/pipeline/plan_templates.hpp"
#include "rheo/pipeline/recompose.hpp"
#include "rheo/pipeline/recompose_nodes.hpp"
#include "rheo/pipeline/repair.hpp"
#include "rheo/recover/replan.hpp"
#include "rheo/reshard/tensor_bytes.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"

namespace {

using namespace rheo;

std::vector<seconds> uneven_layers(int count)
{
    std::vector<seconds> times;
    for (int l = 0; l < count; ++l) {
        times.push_back(microseconds(900 + 31 * (l % 7)));
    }
    return times;
}

/// The least slowest stage, for every number of stages.
void slowest_stage_for_1_to_64_stages(benchmark::State& state)
{
    auto const times = uneven_layers(static_cast<int>(state.range(0)));
    for (auto _ : state) {
        benchmark::DoNotOptimize(plan_templates(times, {1, 64}));
    }
}
BENCHMARK(slowest_stage_for_1_to_64_stages)->Arg(24)->Arg(48)->Arg(96)->Arg(192)->Unit(benchmark::kMillisecond);

/// The estimate's optimum, for every number of stages at four microbatches per stage.
void estimate_for_1_to_64_stages(benchmark::State& state)
{
    auto const times = uneven_layers(static_cast<int>(state.range(0)));
    for (auto _ : state) {
        benchmark::DoNotOptimize(estimate_optimal_cuts_up_to(times, 64));
    }
}
BENCHMARK(estimate_for_1_to_64_stages)->Arg(24)->Arg(48)->Arg(96)->Arg(192)->Unit(benchmark::kMillisecond);

stage_prices prices_of_layers(int count, int devices_per_node)
{
    std::vector<layer_profile> layers;
    for (auto const time : uneven_layers(count)) {
        layers.push_back({time / 3.0, time * (2.0 / 3.0), mebibytes(100), mebibytes(10), mebibytes(1), {}});
        for (int d = 2; d <= devices_per_node; ++d) {
            layers.back().all_reduce.push_back(microseconds(10 * d));
        }
    }
    return make_stage_prices(layers, {microseconds(10), {5e9}}, devices_per_node);
}

/// The makespan of 1F1B at four microbatches per stage: so many stages of so many layers. `gap` is what is not proved, in percent.
void makespan_of_1f1b(benchmark::State& state)
{
    auto const stages = static_cast<int>(state.range(0));
    auto const prices = prices_of_layers(static_cast<int>(state.range(1)), 1);
    makespan_split found;
    for (auto _ : state) {
        found = *optimal_makespan(prices, {.schedule = one_f_one_b{}, .nodes = stages, .microbatches = 4 * stages});
    }
    state.counters["gap"] = 100 * (1 - found.bound / found.makespan);
    state.counters["explored"] = found.explored;
}
BENCHMARK(makespan_of_1f1b)
    ->Args({4, 24})
    ->Args({8, 24})
    ->Args({16, 24})
    ->Args({4, 96})
    ->Args({8, 96})
    ->Args({16, 96})
    ->Args({64, 96})
    ->Unit(benchmark::kMillisecond);

/// The same objectives when a stage may take several devices of a node: nodes, devices of each, 24 layers.
void estimate_with_devices(benchmark::State& state)
{
    auto const prices = prices_of_layers(24, static_cast<int>(state.range(1)));
    for (auto _ : state) {
        benchmark::DoNotOptimize(optimal_estimate(prices, static_cast<int>(state.range(0)), 32, [](layer_span, int, int) { return true; }));
    }
}
BENCHMARK(estimate_with_devices)->Args({1, 4})->Args({2, 4})->Args({4, 4})->Args({2, 8})->Unit(benchmark::kMillisecond);

void makespan_with_devices(benchmark::State& state)
{
    auto const prices = prices_of_layers(24, static_cast<int>(state.range(1)));
    makespan_split found;
    for (auto _ : state) {
        found = *optimal_makespan(prices, {.schedule = one_f_one_b{}, .nodes = static_cast<int>(state.range(0)), .microbatches = 32});
    }
    state.counters["gap"] = 100 * (1 - found.bound / found.makespan);
}
BENCHMARK(makespan_with_devices)->Args({1, 4})->Args({2, 4})->Args({4, 4})->Unit(benchmark::kMillisecond);

void instantiate_sizes_8_to_232(benchmark::State& state)
{
    auto const ready = plan_templates(uneven_layers(240), {8, 232});
    for (auto _ : state) {
        benchmark::DoNotOptimize(instantiate(ready, {.ranks = static_cast<int>(state.range(0)), .failures = 2, .microbatches = 1024}));
    }
}
BENCHMARK(instantiate_sizes_8_to_232)->RangeMultiplier(2)->Range(32, 256)->Unit(benchmark::kMillisecond);

/// 256 ranks, so many templates from size 8 on.
void instantiate_by_templates(benchmark::State& state)
{
    auto const ready = plan_templates(uneven_layers(240), {8, 7 + static_cast<int>(state.range(0))});
    for (auto _ : state) {
        benchmark::DoNotOptimize(instantiate(ready, {.ranks = 256, .failures = 2, .microbatches = 1024}));
    }
}
BENCHMARK(instantiate_by_templates)->RangeMultiplier(4)->Range(4, 225)->Unit(benchmark::kMillisecond);

/// Every number of ranks from 8 to 256; `worst` is the longest of them in milliseconds of processor time.
void instantiate_every_number_up_to_256(benchmark::State& state)
{
    auto const ready = plan_templates(uneven_layers(240), {8, 232});
    double worst = 0;
    for (auto _ : state) {
        for (int ranks = 8; ranks <= 256; ++ranks) {
            auto const start = std::clock();
            benchmark::DoNotOptimize(instantiate(ready, {.ranks = ranks, .failures = 2, .microbatches = 1024}));
            worst = std::max(worst, 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
        }
    }
    state.counters["worst"] = worst;
}
BENCHMARK(instantiate_every_number_up_to_256)->Unit(benchmark::kMillisecond);

/// A GPT-2 of 24 layers on so many ranks, two of which are lost.
struct loss {
    collection state;
    template_set_value ready;
    std::vector<tensor_bytes> tensors;
    std::vector<pipeline_instance> before;
    std::vector<rank_holdings> survivors;
};

constexpr recomposition_request wanted{.failures = 1, .microbatches = 128};

loss make_loss(int ranks)
{
    auto const model = gpt_model({.vocabulary = 50304, .context = 1024, .width = 768, .heads = 12, .blocks = 22});
    loss result{state_of(model), plan_templates(uneven_layers(24), {2, 24}), {}, {}, {}};
    result.tensors = tensor_bytes_of(result.state, committed_formats);
    int rank = 0;
    auto const chosen = instantiate(result.ready, {.ranks = ranks, .failures = 1, .microbatches = 128});
    for (auto const n : chosen->sizes) {
        auto const& bounds = template_of_size(result.ready, n).cuts;
        result.before.push_back({bounds, {}});
        for (int s = 0; s < n; ++s, ++rank) {
            result.before.back().stages.push_back({rank_id{rank}});
            rank_holdings holds{.rank = rank_id{rank}, .version = {}, .layers = {}, .uses = {}};
            for (auto l = bounds[static_cast<std::size_t>(s)]; l < bounds[static_cast<std::size_t>(s) + 1]; ++l) {
                holds.layers.push_back(l);
            }
            if (rank != 1 && rank != 4) {
                result.survivors.push_back(holds);
            }
        }
    }
    return result;
}

void recompose_after_a_loss(benchmark::State& state)
{
    auto const lost = make_loss(static_cast<int>(state.range(0)));
    for (auto _ : state) {
        benchmark::DoNotOptimize(recompose(lost.survivors, lost.ready, lost.tensors, wanted));
    }
}
BENCHMARK(recompose_after_a_loss)->RangeMultiplier(2)->Range(8, 64)->Unit(benchmark::kMicrosecond);

void repair_after_a_loss(benchmark::State& state)
{
    auto const lost = make_loss(static_cast<int>(state.range(0)));
    for (auto _ : state) {
        benchmark::DoNotOptimize(repair(lost.before, lost.survivors, lost.ready, lost.tensors, wanted));
    }
}
BENCHMARK(repair_after_a_loss)->RangeMultiplier(2)->Range(8, 64)->Unit(benchmark::kMicrosecond);

/// The whole decision after the loss, with what can still be lost.
void decision_after_a_loss(benchmark::State& state)
{
    auto const lost = make_loss(static_cast<int>(state.range(0)));
    for (auto _ : state) {
        benchmark::DoNotOptimize(decide_membership({lost.before, lost.survivors, {}, &lost.ready, lost.tensors, wanted}));
    }
}
BENCHMARK(decision_after_a_loss)->RangeMultiplier(2)->Range(8, 64)->Unit(benchmark::kMicrosecond);

/// Recomposition of whole nodes: so many nodes, devices of each.
void recompose_whole_nodes(benchmark::State& state)
{
    auto const devices = static_cast<int>(state.range(1));
    auto const lost = make_loss(static_cast<int>(state.range(0)) * devices);
    std::vector<node_id> nodes;
    for (auto const& survivor : lost.survivors) {
        nodes.push_back(node_id{survivor.rank.value / devices});
    }
    for (auto _ : state) {
        benchmark::DoNotOptimize(recompose_nodes(lost.survivors, nodes, devices, lost.ready, lost.tensors, wanted));
    }
}
BENCHMARK(recompose_whole_nodes)->Args({16, 1})->Args({64, 1})->Args({16, 4})->Args({64, 4})->Args({64, 8})->Unit(benchmark::kMicrosecond);

/// Layouts included.
void copy_plan_after_a_loss(benchmark::State& state)
{
    auto const lost = make_loss(static_cast<int>(state.range(0)));
    replanning const known{.state = lost.state, .layers = 24, .ready = lost.ready, .wanted = wanted, .round_budget = mebibytes(256)};
    auto const next = recompose(lost.survivors, lost.ready, lost.tensors, wanted);
    std::vector<std::vector<layer_id>> layers(lost.survivors.size());
    std::vector<rank_layers> after;
    for (std::size_t r = 0; r < layers.size(); ++r) {
        for (auto const& pipeline : next->pipelines) {
            if (auto of = layers_in(layers_of(pipeline, lost.survivors[r].rank)); !of.empty()) {
                layers[r] = std::move(of);
            }
        }
        after.push_back({lost.survivors[r].rank, layers[r]});
    }
    for (auto _ : state) {
        benchmark::DoNotOptimize(plan_copies(layers_by_rank(lost.survivors), after, known));
    }
}
BENCHMARK(copy_plan_after_a_loss)->RangeMultiplier(2)->Range(8, 64)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
