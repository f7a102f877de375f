// SPDX-License-Identifier: Apache-2.0
// What schedules take as ranks and microbatches grow: making one, lowering it, proving it, timing it, bounding it.
#include <array>
#include <cstddef>

#include <benchmark/benchmark.h>

#include "rheo/schedule/check/complete.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/check/figures.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/lowering.hpp"

namespace {

using namespace rheo;

constexpr auto families = std::array{"1f1b", "interleaved", "zb-v", "v-half", "dualpipe", "hanayo", "seq1f1b"};

/// Family, ranks, microbatches.
program made(benchmark::State const& state)
{
    auto const family = *parse_schedule(families[static_cast<std::size_t>(state.range(0))]);
    return make_program(family, {.ranks = static_cast<int>(state.range(1)), .microbatches = static_cast<int>(state.range(2))});
}

void name(benchmark::State& state) { state.SetLabel(families[static_cast<std::size_t>(state.range(0))]); }

void generate(benchmark::State& state)
{
    name(state);
    for (auto _ : state) {
        benchmark::DoNotOptimize(made(state));
    }
}

void lower_by_pairs(benchmark::State& state)
{
    name(state);
    auto const p = made(state);
    for (auto _ : state) {
        benchmark::DoNotOptimize(lower(p));
    }
}

void prove(benchmark::State& state)
{
    name(state);
    auto const p = lower(made(state));
    auto const microbatches = static_cast<int>(state.range(2));
    for (auto _ : state) {
        benchmark::DoNotOptimize(complete(p, microbatches).ok && deadlock_free<rendezvous>(p).ok);
    }
}

void count_figures(benchmark::State& state)
{
    name(state);
    auto const p = made(state);
    auto const costs = even_costs(p, {{1.0}, {2.0}, {1.0}, {1.0}, {0.0}, {0.0}});
    for (auto _ : state) {
        benchmark::DoNotOptimize(figures_of(p, costs));
    }
}

void sizes(benchmark::internal::Benchmark* b)
{
    for (int family = 0; family < static_cast<int>(families.size()); ++family) {
        b->Args({family, 8, 32})->Args({family, 16, 128})->Args({family, 32, 512});
    }
    b->Unit(benchmark::kMillisecond);
}

BENCHMARK(generate)->Apply(sizes);
BENCHMARK(lower_by_pairs)->Apply(sizes);
BENCHMARK(prove)->Apply(sizes);
BENCHMARK(count_figures)->Apply(sizes);

}  // namespace

BENCHMARK_MAIN();
