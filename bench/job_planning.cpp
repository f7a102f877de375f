// SPDX-License-Identifier: Apache-2.0
// What planning a job of thousands of ranks takes: the plan that it begins with, what ranks keep to replan with, the decision after a loss with salvage and
// copies, and all that `rheo plan` shows.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <vector>

#include "rheo/model/gpt.hpp"
#include "rheo/planner/make_forecast.hpp"
#include "rheo/planner/make_plan.hpp"
#include "rheo/planner/make_replanning.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"

namespace {

using namespace rheo;

model_description gpt() { return gpt_model({.vocabulary = 50257, .context = 1024, .width = 768, .heads = 12, .blocks = 48}); }

/// Ranks, microbatches of a step, and the fewest ranks of a pipeline.
constexpr auto sizes = [](auto* of) { of->Args({64, 2048, 1})->Args({1024, 4096, 1})->Args({1024, 4096, 8})->Args({10'000, 100'000, 8}); };

struct large_job {
    explicit large_job(benchmark::State const& state)
        : ranks{static_cast<int>(state.range(0))},
          request{.schedule = one_f_one_b{},
                  .microbatches = static_cast<int>(state.range(1)),
                  .microbatch = {1, 1024},
                  .min_ranks = static_cast<int>(state.range(2))}
    {
    }

    model_description model = gpt();
    int ranks;
    planning_request request;
};

void start_of_a_job(benchmark::State& state)
{
    large_job const job{state};
    for (auto _ : state) {
        benchmark::DoNotOptimize(make_plan(job.model, job.request, job.ranks));
        benchmark::DoNotOptimize(make_replanning(job.model, job.request, job.ranks));
    }
}
BENCHMARK(start_of_a_job)->Apply(sizes)->Unit(benchmark::kMillisecond);

void decision_after_a_loss(benchmark::State& state)
{
    large_job const job{state};
    auto const first = *make_plan(job.model, job.request, job.ranks);
    auto const known = make_replanning(job.model, job.request, job.ranks);
    auto survivors = holdings_under(first.plan, ranks_of(first.plan), known.cells_per_layer, known.optimizer);
    survivors.erase(survivors.begin() + static_cast<std::ptrdiff_t>(survivors.size() / 2));
    for (auto _ : state) {
        benchmark::DoNotOptimize(plan_membership(survivors, first.plan.pipelines, {}, known, membership_rules_of(job.request)));
    }
}
BENCHMARK(decision_after_a_loss)->Apply(sizes)->Unit(benchmark::kMillisecond);

void forecast_of_a_job(benchmark::State& state)
{
    large_job const job{state};
    auto const first = *make_plan(job.model, job.request, job.ranks);
    for (auto _ : state) {
        benchmark::DoNotOptimize(make_forecast(first.plan, job.model, job.request));
    }
}
BENCHMARK(forecast_of_a_job)->Apply(sizes)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
