// SPDX-License-Identifier: Apache-2.0
// What planning a job of thousands of ranks takes: the plan that it begins with, what ranks keep to replan with, the decision after a loss with salvage and
// copies, and all that `rheo plan` shows; and the makespan of a long step, which the search for cuts asks for thousands of times.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/model/gpt.hpp"
#include "rheo/partition/detail/replay.hpp"
#include "rheo/planner/make_forecast.hpp"
#include "rheo/planner/make_plan.hpp"
#include "rheo/planner/make_replanning.hpp"
#include "rheo/schedule/check/timeline.hpp"
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

/// @param is_midway whether ranks have summed what they do first, half of their microbatches
void decision_after_a_loss(benchmark::State& state, bool is_midway)
{
    large_job const job{state};
    auto const first = *make_plan(job.model, job.request, job.ranks);
    auto const known = make_replanning(job.model, job.request, job.ranks);
    auto const rules = membership_rules_of(job.request);
    auto const held = holdings_under(first.plan, ranks_of(first.plan), known.cells_per_layer, known.optimizer);
    auto survivors = plan_as_chosen(held, known, rules, recomposition_of(first.plan)).salvage.after;
    for (std::size_t p = 0; is_midway && p < first.plan.pipelines.size(); ++p) {
        microbatch_set done;
        for (std::size_t k = 0; k < first.plan.work[p].size() / 2; ++k) {
            done.insert(first.plan.work[p][k].microbatch);
        }
        for (auto const rank : ranks_of(first.plan.pipelines[p])) {
            for (auto& use : survivors[at(rank)].uses) {
                use.done = done;
            }
        }
    }
    survivors.erase(survivors.begin() + static_cast<std::ptrdiff_t>(survivors.size() / 2));
    for (auto _ : state) {
        benchmark::DoNotOptimize(plan_membership(survivors, first.plan.pipelines, {}, known, rules));
    }
}
BENCHMARK_CAPTURE(decision_after_a_loss, between_steps, false)->Apply(sizes)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decision_after_a_loss, in_a_step, true)->Apply(sizes)->Unit(benchmark::kMillisecond);

void forecast_of_a_job(benchmark::State& state)
{
    large_job const job{state};
    auto const first = *make_plan(job.model, job.request, job.ranks);
    for (auto _ : state) {
        benchmark::DoNotOptimize(make_forecast(first.plan, job.model, job.request));
    }
}
BENCHMARK(forecast_of_a_job)->Apply(sizes)->Unit(benchmark::kMillisecond);

/// Stages of 1F1B, each with times of its own, and 1,024 microbatches.
struct long_step {
    explicit long_step(benchmark::State const& state) : stages{static_cast<int>(state.range(0))}
    {
        for (int s = 0; s < stages; ++s) {
            times.push_back({1000 + 200 * (s * 7 % 5), 2000 + 400 * (s * 3 % 5), 10, 10});
            auto const& t = times.back();
            auto const time = [](std::int64_t count) { return nanoseconds(static_cast<double>(count)); };
            costs.push_back({time(t.forward), time(t.backward), time(t.backward / 2), time(t.backward / 2), time(10), time(10)});
        }
    }

    int stages;
    program p = make_program(one_f_one_b{}, {.ranks = stages, .microbatches = 1024});
    std::vector<detail::stage_times> times{};
    stage_costs costs{};
};

void makespan_by_replay(benchmark::State& state)
{
    long_step const step{state};
    detail::replay replayed{step.p};
    for (auto _ : state) {
        benchmark::DoNotOptimize(replayed(step.times));
    }
}
BENCHMARK(makespan_by_replay)->Arg(8)->Arg(24)->Arg(48)->Unit(benchmark::kMicrosecond);

void makespan_by_timeline(benchmark::State& state)
{
    long_step const step{state};
    for (auto _ : state) {
        benchmark::DoNotOptimize(makespan(step.p, step.costs));
    }
}
BENCHMARK(makespan_by_timeline)->Arg(8)->Arg(24)->Arg(48)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
