// SPDX-License-Identifier: Apache-2.0
// What planning takes: templates of a deep model, instantiation of many ranks, recomposition and copies after a loss.
#include <benchmark/benchmark.h>

#include "rheo/model/state.hpp"
#include "rheo/pipeline/instantiate.hpp"
#include "rheo/pipeline/plan_templates.hpp"
#include "rheo/pipeline/recompose.hpp"
#include "rheo/reshard/copy_plan.hpp"
#include "rheo/reshard/tensor_bytes.hpp"

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

void templates_for_1_to_64_of_96_layers(benchmark::State& state)
{
    auto const times = uneven_layers(96);
    for (auto _ : state) {
        benchmark::DoNotOptimize(plan_templates(times, {1, 64}));
    }
}
BENCHMARK(templates_for_1_to_64_of_96_layers)->Unit(benchmark::kMillisecond);

void instantiate_sizes_8_to_232(benchmark::State& state)
{
    auto const ready = plan_templates(uneven_layers(240), {8, 232});
    for (auto _ : state) {
        benchmark::DoNotOptimize(instantiate(ready, {.ranks = static_cast<int>(state.range(0)), .failures = 2, .microbatches = 1024}));
    }
}
BENCHMARK(instantiate_sizes_8_to_232)->RangeMultiplier(2)->Range(32, 256)->Unit(benchmark::kMillisecond);

/// A GPT-2 of 24 layers on so many ranks, two of which are lost.
struct loss {
    collection state;
    template_set_value ready;
    std::vector<tensor_bytes> tensors;
    std::vector<rank_holdings> survivors;
};

constexpr bytes element{12};
constexpr recomposition_request wanted{.failures = 1, .microbatches = 128};

loss make_loss(int ranks)
{
    auto const model = gpt_model({.vocabulary = 50304, .context = 1024, .width = 768, .heads = 12, .blocks = 22});
    loss result{state_of(model), plan_templates(uneven_layers(24), {2, 24}), {}, {}};
    result.tensors = tensor_bytes_of(result.state, element);
    int rank = 0;
    for (auto const n : instantiate(result.ready, {.ranks = ranks, .failures = 1, .microbatches = 128}).sizes) {
        auto const& bounds = template_of_size(result.ready, n).cuts;
        for (int s = 0; s < n; ++s, ++rank) {
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

void copy_plan_after_a_loss(benchmark::State& state)
{
    auto const lost = make_loss(static_cast<int>(state.range(0)));
    copy_plan_request request;
    for (auto const& survivor : lost.survivors) {
        request.held.push_back({survivor.rank, whole_parts(lost.state, survivor.layers)});
        request.wanted.push_back({survivor.rank, {}});
    }
    for (auto const& pipeline : recompose(lost.survivors, lost.ready, lost.tensors, wanted).pipelines) {
        for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
            std::vector<layer_id> layers;
            for (auto l = pipeline.cuts[s]; l < pipeline.cuts[s + 1]; ++l) {
                layers.push_back(l);
            }
            for (auto& wants : request.wanted) {
                if (wants.rank == pipeline.stages[s].front()) {
                    wants.parts = whole_parts(lost.state, layers);
                }
            }
        }
    }
    request.element_bytes.assign(lost.state.tensors.size(), element);
    for (auto _ : state) {
        benchmark::DoNotOptimize(copy_plan(request));
    }
}
BENCHMARK(copy_plan_after_a_loss)->RangeMultiplier(2)->Range(8, 64)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
