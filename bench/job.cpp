// SPDX-License-Identifier: Apache-2.0
// What simulating takes: a step of 10,000 ranks, rehearsed and played on a network, and jobs with losses.
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "rheo/job/cluster_request.hpp"
#include "rheo/job/cluster_steps.hpp"
#include "rheo/job/simulate_job.hpp"
#include "rheo/job/sweep_step.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/families/zb_h1.hpp"
#include "rheo/simulate/network/network_model.hpp"
#include "rheo/simulate/played_step/play_step.hpp"

namespace {

using namespace rheo;

/// Nodes of eight devices.
cluster_model cluster_of(int nodes)
{
    return {.device = {{{100e12}, {1e12}, gibibytes(80)}, {500}, {100}},
            .levels = {{"node", {8, network_topology::switched, {microseconds(2), {300e9}}}},
                       {"rack", {nodes, network_topology::switched, {microseconds(5), {25e9}}}}},
            .different = {},
            .storage = cluster_storage{{100e9}, {100e9}},
            .recovery = recovery_times{{0.5}, {}, {}, {0.01}, {}, {}, {0.05}, {}, {}}};
}

model_description gpt() { return gpt_model({.vocabulary = 50257, .context = 1024, .width = 1024, .heads = 16, .blocks = 24}); }

/// Pipelines of eight ranks with 32 microbatches each.
struct large_step {
    cluster_model cluster;
    modelled_step step;
};

large_step step_of(int pipelines)
{
    constexpr int stages = 8;
    auto const cluster = cluster_of(pipelines);
    auto const model = gpt();
    auto const layers = static_cast<int>(model.layers.size());
    auto const request = on_cluster({.schedule = one_f_one_b{}, .microbatches = 32 * pipelines, .microbatch = {4, 1024}}, cluster);
    plan p{.schedule = one_f_one_b{}, .pipelines = {}, .work = deal(std::vector<int>(static_cast<std::size_t>(pipelines), 32)), .spares = {}};
    for (int i = 0; i < pipelines; ++i) {
        auto& pipeline = p.pipelines.emplace_back();
        for (int s = 0; s <= stages; ++s) {
            pipeline.cuts.push_back(layer_id{s * layers / stages});
        }
        for (int s = 0; s < stages; ++s) {
            pipeline.stages.push_back({rank_id{i * stages + s}});
        }
    }
    return {cluster, cluster_steps<>{model, request, cluster}.step_of(p)};
}

void count_instructions(benchmark::State& state, modelled_step const& step)
{
    std::int64_t instructions = 0;
    for (auto const& pipeline : step.pipelines) {
        for (auto const& row : pipeline.program.rows) {
            instructions += static_cast<std::int64_t>(row.size());
        }
    }
    state.SetItemsProcessed(state.iterations() * instructions);
}

void rehearsed_step(benchmark::State& state)
{
    auto of = step_of(static_cast<int>(state.range(0)));
    of.step.reductions.assign(of.step.sums.size(), milliseconds(10));
    for (auto _ : state) {
        benchmark::DoNotOptimize(rehearse_step(of.step).end);
    }
    count_instructions(state, of.step);
}
BENCHMARK(rehearsed_step)->Arg(125)->Arg(1250)->Unit(benchmark::kMillisecond);

/// Pipelines that are alike, played once or each by itself, as where they differ.
template <class Model>
void play(benchmark::State& state, bool each_pipeline)
{
    auto const of = step_of(static_cast<int>(state.range(0)));
    auto const levels = network_of(of.cluster);
    for (auto _ : state) {
        benchmark::DoNotOptimize(play_step<Model>(of.step, array_view<network_level<> const>{levels}, {.each_pipeline = each_pipeline})->end);
    }
    count_instructions(state, of.step);
}

void played_free(benchmark::State& state) { play<free_network>(state, true); }
void played_contended(benchmark::State& state, bool each_pipeline) { play<contended_network>(state, each_pipeline); }
BENCHMARK(played_free)->Arg(125)->Arg(1250)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(played_contended, each, true)->Arg(125)->Arg(1250)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(played_contended, once, false)->Arg(125)->Arg(1250)->Unit(benchmark::kMillisecond);

/// Ranks, hours between losses of a node, hours.
void a_job_with_losses(benchmark::State& state)
{
    auto const ranks = static_cast<int>(state.range(0));
    auto const cluster = cluster_of(ranks / 8);
    job_description job{.model = gpt(),
                        .request = {.schedule = one_f_one_b{}, .microbatches = 4 * ranks, .microbatch = {4, 1024}, .min_ranks = 4},
                        .cluster = cluster,
                        .ranks = ranks,
                        .steps = 1'000'000'000,
                        .checkpoint_every = 500,
                        .until = {state.range(2) * 3600 * std::int64_t{1'000'000'000}}};
    job.request = on_cluster(job.request, cluster);
    random_losses const losses{.mtbf = hours(static_cast<double>(state.range(1))), .repair = hours(1), .seed = 1, .ranks = ranks, .node_size = 8};
    double steps = 0;
    double changes = 0;
    for (auto _ : state) {
        auto const out = simulate_job<contended_network>(job, job_policy::rheo, job_event_source{{}, losses});
        steps = static_cast<double>(out->account.steps);
        changes = static_cast<double>(out->changes.size());
    }
    state.counters["steps"] = steps;
    state.counters["changes"] = changes;
}
BENCHMARK(a_job_with_losses)->Args({64, 40, 168})->Args({10'000, 2000, 8})->Unit(benchmark::kMillisecond);

/// Points of a sweep: ranks in pipelines of so many stages.
void swept_points(benchmark::State& state, any_schedule schedule)
{
    auto const ranks = static_cast<int>(state.range(0));
    auto const cluster = cluster_of(ranks / 8);
    job_description job{.model = gpt(), .request = {.schedule = schedule, .microbatch = {2, 1024}}, .cluster = cluster, .ranks = ranks, .steps = 1};
    job.request = on_cluster(job.request, cluster);
    std::int64_t points = 0;
    for (auto _ : state) {
        for (int const stages : {1, 2, 4, 8}) {
            for (int const share : {4, 8, 16}) {
                job.request.pipelines.assign(static_cast<std::size_t>(ranks / stages), stages);
                job.request.microbatches = share * ranks / stages;
                benchmark::DoNotOptimize(sweep_step<contended_network>(job).binds);
                ++points;
            }
        }
    }
    state.SetItemsProcessed(points);
}
BENCHMARK_CAPTURE(swept_points, 1f1b, one_f_one_b{})->Arg(8)->Arg(16)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(swept_points, zb_h1, zb_h1{})->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
