// SPDX-License-Identifier: Apache-2.0
// The host kernels at GPT-2 124M's shapes: what the machine's GEMM gives, what the operations get out of it, what exact
// accumulation costs, and memory-bound operations against a copy. The argument called threads is the tile pool's.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <vector>

#include "kernels/adamw/adamw.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/blas.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/digest/digest.hpp"
#include "kernels/exact/exact.hpp"
#include "kernels/gelu/gelu.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/linear/linear.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "kernels/tiles.hpp"

namespace {

using namespace rheo;
using floats = std::vector<float>;

floats values(std::int64_t count)
{
    std::mt19937 random{1};
    std::uniform_real_distribution<float> draw{-1.0F, 1.0F};
    floats result(static_cast<std::size_t>(count));
    for (auto& v : result) {
        v = draw(random);
    }
    return result;
}

void rate(benchmark::State& state, double flops)
{
    state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void bandwidth(benchmark::State& state, double bytes)
{
    state.counters["GB/s"] = benchmark::Counter(bytes * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

/// The measured peak: 1024^3 products, one per thread at a time.
void gemm_peak(benchmark::State& state)
{
    tile_pool pool{static_cast<int>(state.range(0))};
    std::int64_t const n = 1024;
    auto const a = values(n * n);
    auto const b = values(n * n);
    auto c = values(n * n * 2 * pool.threads());
    for (auto _ : state) {
        pool.run(2 * pool.threads(), [&](std::int64_t t, int) {
            sgemm({.m = n, .n = n, .k = n, .a = a.data(), .a_row = n, .b = b.data(), .b_row = n, .c = c.data() + t * n * n, .c_row = n});
        });
    }
    rate(state, 2.0 * 1024 * 1024 * 1024 * 2 * pool.threads());
}

struct matrices {
    std::int64_t rows, in, out;
    floats x, w, dy, y, activated;

    explicit matrices(benchmark::State const& state)
        : rows{state.range(1)},
          in{state.range(2)},
          out{state.range(3)},
          x{values(rows * in)},
          w{values(in * out)},
          dy{values(rows * out)},
          y(x.size() > dy.size() ? x.size() : dy.size()),
          activated(dy.size())
    {
    }

    double flops() const { return 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out); }
};

void linear_forward(benchmark::State& state)
{
    tile_pool pool{static_cast<int>(state.range(0))};
    matrices m{state};
    for (auto _ : state) {
        host::linear_forward(pool, {.rows = m.rows, .in = m.in, .out = m.out, .input = m.x.data(), .weight = m.w.data(), .output = m.y.data()});
    }
    rate(state, m.flops());
}

void linear_gelu_forward(benchmark::State& state)
{
    tile_pool pool{static_cast<int>(state.range(0))};
    matrices m{state};
    for (auto _ : state) {
        host::linear_forward(pool, {.rows = m.rows,
                                    .in = m.in,
                                    .out = m.out,
                                    .input = m.x.data(),
                                    .weight = m.w.data(),
                                    .bias = m.w.data(),
                                    .output = m.y.data(),
                                    .activated = m.activated.data()});
    }
    rate(state, m.flops());
}

void linear_backward_input(benchmark::State& state)
{
    tile_pool pool{static_cast<int>(state.range(0))};
    matrices m{state};
    for (auto _ : state) {
        host::linear_backward_input(
            pool, {.rows = m.rows, .in = m.in, .out = m.out, .weight = m.w.data(), .output_gradient = m.dy.data(), .input_gradient = m.y.data()});
    }
    rate(state, m.flops());
}

void weight_gradient_exact(benchmark::State& state)
{
    tile_pool pool{static_cast<int>(state.range(0))};
    matrices m{state};
    std::vector<std::int64_t> sums(m.w.size());
    accumulator_state sum_state{.scale_log2 = 25};
    for (auto _ : state) {
        host::linear_backward_weight(
            pool,
            {.rows = m.rows, .in = m.in, .out = m.out, .input = m.x.data(), .output_gradient = m.dy.data(), .weight_gradient = {sums.data(), &sum_state, 8}});
    }
    rate(state, m.flops());
}

void weight_gradient_float(benchmark::State& state)
{
    tile_pool pool{static_cast<int>(state.range(0))};
    matrices m{state};
    floats sums(m.w.size());
    for (auto _ : state) {
        host::linear_backward_weight(
            pool, linear_backward_weight_arguments<fp32_inexact>{
                      .rows = m.rows, .in = m.in, .out = m.out, .input = m.x.data(), .output_gradient = m.dy.data(), .weight_gradient = {sums.data()}});
    }
    rate(state, m.flops());
}

void attention_forward_backward(benchmark::State& state)
{
    tile_pool pool{static_cast<int>(state.range(0))};
    std::int64_t const batch = state.range(1);
    std::int64_t const length = state.range(2);
    auto const qkv = values(batch * length * 3 * 768);
    auto const dout = values(batch * length * 768);
    auto out = dout;
    auto lse = values(batch * 12 * length);
    auto gradient = qkv;
    dropout const drop{.probability = state.range(3) != 0 ? 0.1 : 0.0};
    for (auto _ : state) {
        host::attention_forward(
            pool,
            {.batch = batch, .length = length, .width = 768, .heads = 12, .qkv = qkv.data(), .drop = drop, .output = out.data(), .log_sum_exp = lse.data()});
        host::attention_backward(pool, {.batch = batch,
                                        .length = length,
                                        .width = 768,
                                        .heads = 12,
                                        .qkv = qkv.data(),
                                        .output = out.data(),
                                        .log_sum_exp = lse.data(),
                                        .output_gradient = dout.data(),
                                        .drop = drop,
                                        .qkv_gradient = gradient.data()});
    }
    rate(state, 7 * 2.0 * static_cast<double>(batch * length * length) * 768);
}

void cross_entropy(benchmark::State& state)
{
    tile_pool pool{static_cast<int>(state.range(0))};
    std::int64_t const rows = 256;
    std::int64_t const vocabulary = 50257;
    auto logits = values(rows * vocabulary);
    std::vector<std::int32_t> const targets(static_cast<std::size_t>(rows), 17);
    loss_sum loss;
    for (auto _ : state) {
        host::cross_entropy_fused(pool, {.rows = rows, .vocabulary = vocabulary, .logits = logits.data(), .targets = targets.data(), .loss = &loss});
    }
    bandwidth(state, 2 * 4.0 * static_cast<double>(rows * vocabulary));
}

// The memory-bound operations run on 16384 rows of 768: 48 MiB per tensor, beyond the caches.
constexpr std::int64_t long_rows = 16384;

void copy(benchmark::State& state)
{
    tile_pool pool{static_cast<int>(state.range(0))};
    auto const from = values(long_rows * 768);
    auto to = from;
    for (auto _ : state) {
        pool.run(long_rows / 16, [&](std::int64_t t, int) { std::memcpy(to.data() + t * 16 * 768, from.data() + t * 16 * 768, 16 * 768 * sizeof(float)); });
        benchmark::ClobberMemory();
    }
    bandwidth(state, 2 * 4.0 * long_rows * 768);
}

void layer_norm_forward(benchmark::State& state)
{
    tile_pool pool{static_cast<int>(state.range(0))};
    auto const x = values(long_rows * 768);
    auto y = x;
    auto mean = values(long_rows);
    auto rstd = mean;
    for (auto _ : state) {
        host::layer_norm_forward(pool, {.rows = long_rows,
                                        .width = 768,
                                        .input = x.data(),
                                        .gamma = x.data(),
                                        .beta = x.data(),
                                        .output = y.data(),
                                        .mean = mean.data(),
                                        .rstd = rstd.data()});
    }
    bandwidth(state, 2 * 4.0 * long_rows * 768);
}

void residual_norm_forward(benchmark::State& state)
{
    tile_pool pool{static_cast<int>(state.range(0))};
    auto const x = values(long_rows * 768);
    auto branch = x;
    auto r = x;
    auto y = x;
    auto mean = values(long_rows);
    auto rstd = mean;
    dropout const drop{.probability = state.range(1) != 0 ? 0.1 : 0.0};
    for (auto _ : state) {
        host::residual_norm_forward(pool, {.rows = long_rows,
                                           .width = 768,
                                           .stream = x.data(),
                                           .branch = branch.data(),
                                           .drop = drop,
                                           .gamma = x.data(),
                                           .beta = x.data(),
                                           .residual = r.data(),
                                           .output = y.data(),
                                           .mean = mean.data(),
                                           .rstd = rstd.data()});
    }
    bandwidth(state, 4 * 4.0 * long_rows * 768);
}

void gelu_forward(benchmark::State& state)
{
    tile_pool pool{static_cast<int>(state.range(0))};
    auto const x = values(long_rows * 768);
    auto y = x;
    for (auto _ : state) {
        host::gelu_forward(pool, {.count = long_rows * 768, .input = x.data(), .output = y.data()});
    }
    bandwidth(state, 2 * 4.0 * long_rows * 768);
}

void adamw_update(benchmark::State& state)
{
    tile_pool pool{static_cast<int>(state.range(0))};
    auto master = values(long_rows * 768);
    auto m = master;
    floats v(master.size());
    auto const g = master;
    for (auto _ : state) {
        host::adamw(pool, {.count = long_rows * 768,
                           .master = master.data(),
                           .first_moment = m.data(),
                           .second_moment = v.data(),
                           .gradient = g.data(),
                           .settings = {.learning_rate = 1e-3, .step = 10}});
    }
    bandwidth(state, 7 * 4.0 * long_rows * 768);
}

void exact_convert(benchmark::State& state)
{
    tile_pool pool{static_cast<int>(state.range(0))};
    std::vector<std::int64_t> const sums(static_cast<std::size_t>(long_rows * 768), 12345);
    floats g(sums.size());
    for (auto _ : state) {
        host::exact_convert(pool, {.count = long_rows * 768, .sums = sums.data(), .scale_log2 = 30, .gradient = g.data()});
    }
    bandwidth(state, 12.0 * long_rows * 768);
}

/// The digest of state, by vectors and by its definition, on one thread.
void digest(benchmark::State& state)
{
    auto const x = values(long_rows * 768);
    for (auto _ : state) {
        benchmark::DoNotOptimize(host::digest_of("wte.weight", tensor_role::parameter, 0, x));
    }
    bandwidth(state, 4.0 * long_rows * 768);
}

void digest_by_definition(benchmark::State& state)
{
    std::vector<std::uint32_t> const bits(static_cast<std::size_t>(long_rows * 768), 0x3f800000U);
    for (auto _ : state) {
        benchmark::DoNotOptimize(digest_of("wte.weight", tensor_role::parameter, 0, bits));
    }
    bandwidth(state, 4.0 * long_rows * 768);
}

void gpt2_shapes(benchmark::internal::Benchmark* b)
{
    b->ArgNames({"threads", "rows", "in", "out"})->UseRealTime();
    for (std::int64_t const threads : {1, 2}) {
        for (auto const& [in, out] : {std::pair{768, 768}, {768, 2304}, {768, 3072}, {3072, 768}, {768, 50257}}) {
            b->Args({threads, 256, in, out});
        }
    }
}

BENCHMARK(gemm_peak)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(linear_forward)->Apply(gpt2_shapes);
BENCHMARK(linear_gelu_forward)->ArgNames({"threads", "rows", "in", "out"})->Args({2, 256, 768, 3072})->UseRealTime();
BENCHMARK(linear_backward_input)->Apply(gpt2_shapes);
BENCHMARK(weight_gradient_exact)->Apply(gpt2_shapes);
BENCHMARK(weight_gradient_float)->Apply(gpt2_shapes);
BENCHMARK(attention_forward_backward)->ArgNames({"threads", "batch", "length", "dropout"})->ArgsProduct({{1, 2}, {4}, {64, 1024}, {0, 1}})->UseRealTime();
BENCHMARK(cross_entropy)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(copy)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(layer_norm_forward)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(residual_norm_forward)->ArgNames({"threads", "dropout"})->ArgsProduct({{1, 2}, {0, 1}})->UseRealTime();
BENCHMARK(gelu_forward)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(adamw_update)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(exact_convert)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(digest);
BENCHMARK(digest_by_definition);

}  // namespace

BENCHMARK_MAIN();
