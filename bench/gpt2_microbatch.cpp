// SPDX-License-Identifier: Apache-2.0
// The kernels of one microbatch of GPT-2 124M (4 x 64 tokens, dropout 0.1), forward and backward, called as the executor
// calls them but without it: the share of the machine's GEMM peak that the kernels leave to reach, and what exact
// accumulation of the weight gradients costs against float. Processor time is the thread's own when threads is 1.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "kernels/attention/attention.hpp"
#include "kernels/blas.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/gelu/gelu.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/linear/linear.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "kernels/tiles.hpp"

namespace {

using namespace rheo;
using floats = std::vector<float>;

constexpr std::int64_t batch = 4;
constexpr std::int64_t length = 64;
constexpr std::int64_t rows = batch * length;
constexpr std::int64_t width = 768;
constexpr std::int64_t heads = 12;
constexpr std::int64_t layers = 12;
constexpr std::int64_t vocabulary = 50257;

floats values(std::int64_t count, float size)
{
    std::mt19937 random{static_cast<unsigned>(count)};
    std::uniform_real_distribution<float> draw{-size, size};
    floats result(static_cast<std::size_t>(count));
    for (auto& v : result) {
        v = draw(random);
    }
    return result;
}

/// A weight matrix with its sums in both forms; only one is used in a run.
struct matrix {
    std::int64_t in, out;
    weight_order order;
    floats weight, bias, float_sums;
    std::vector<std::int64_t> sums, bias_sums;
    accumulator_state state{.scale_log2 = 25}, bias_state{.scale_log2 = 25};

    matrix(std::int64_t in_, std::int64_t out_, bool exact, weight_order order_ = weight_order::in_out)
        : in{in_},
          out{out_},
          order{order_},
          weight{values(in * out, 0.03F)},
          bias{values(out, 0.1F)},
          float_sums(exact ? 0 : weight.size()),
          sums(exact ? weight.size() : 0),
          bias_sums(bias.size())
    {
    }

    void forward(tile_pool& pool, floats const& x, floats& y, floats* activated = nullptr) const
    {
        host::linear_forward(pool, {.rows = rows,
                                    .in = in,
                                    .out = out,
                                    .order = order,
                                    .input = x.data(),
                                    .weight = weight.data(),
                                    .bias = order == weight_order::in_out ? bias.data() : nullptr,
                                    .output = y.data(),
                                    .activated = activated != nullptr ? activated->data() : nullptr});
    }

    void backward(tile_pool& pool, floats const& x, floats const& dy, floats& dx)
    {
        host::linear_backward_input(
            pool, {.rows = rows, .in = in, .out = out, .order = order, .weight = weight.data(), .output_gradient = dy.data(), .input_gradient = dx.data()});
        if (!sums.empty()) {
            host::linear_backward_weight(pool, {.rows = rows,
                                                .in = in,
                                                .out = out,
                                                .order = order,
                                                .input = x.data(),
                                                .output_gradient = dy.data(),
                                                .weight_gradient = {sums.data(), &state, 8}});
        } else {
            host::linear_backward_weight(pool, linear_backward_weight_arguments<fp32_inexact>{.rows = rows,
                                                                                              .in = in,
                                                                                              .out = out,
                                                                                              .order = order,
                                                                                              .input = x.data(),
                                                                                              .output_gradient = dy.data(),
                                                                                              .weight_gradient = {float_sums.data()}});
        }
        if (order == weight_order::in_out) {
            host::linear_backward_bias(pool, {.rows = rows, .out = out, .output_gradient = dy.data(), .bias_gradient = {bias_sums.data(), &bias_state, 8}});
        }
    }
};

/// What a block keeps for its backward pass.
struct block {
    matrix attention_in, attention_out, up, down;
    floats normal1, qkv, mixed, log_sum_exp, residual1, normal2, before_gelu, hidden, residual2;
    floats mean1, rstd1, mean2, rstd2;

    explicit block(bool exact)
        : attention_in{width, 3 * width, exact},
          attention_out{width, width, exact},
          up{width, 4 * width, exact},
          down{4 * width, width, exact},
          normal1(rows * width),
          qkv(rows * 3 * width),
          mixed(rows * width),
          log_sum_exp(batch * heads * length),
          residual1(rows * width),
          normal2(rows * width),
          before_gelu(rows * 4 * width),
          hidden(rows * 4 * width),
          residual2(rows * width),
          mean1(rows),
          rstd1(rows),
          mean2(rows),
          rstd2(rows)
    {
    }
};

void microbatch(benchmark::State& benchmark_state)
{
    tile_pool pool{static_cast<int>(benchmark_state.range(0))};
    bool const exact = benchmark_state.range(1) != 0;
    std::vector<block> blocks;
    for (int l = 0; l < layers; ++l) {
        blocks.emplace_back(exact);
    }
    matrix tied{width, vocabulary, exact, weight_order::out_in};
    auto const positions = values(1024 * width, 0.02F);
    floats const gamma(width, 1.0F);
    floats const beta(width, 0.0F);
    std::vector<std::int64_t> gamma_sums(width);
    std::vector<std::int64_t> position_sums(1024 * width);
    std::vector<std::int64_t> token_sums(static_cast<std::size_t>(vocabulary * width));
    accumulator_state gamma_state{.scale_log2 = 25};
    accumulator_state token_state{.scale_log2 = 25};
    std::vector<std::int32_t> tokens;
    for (int r = 0; r < rows; ++r) {
        tokens.push_back((r * 7919) % vocabulary);
    }
    floats x(rows * width);
    floats branch(rows * width);
    floats logits(rows * vocabulary);
    floats d_residual(rows * width);
    floats d_normal(rows * width);
    floats d_branch(rows * width);
    floats d_hidden(rows * 4 * width);
    floats d_qkv(rows * 3 * width);
    dropout const drop{.probability = 0.1, .key = {.seed = 1}};
    loss_sum loss;

    auto const norm_weights = [&](floats const& input, floats const& mean, floats const& rstd, floats const& dy) {
        host::layer_norm_backward_weight(pool, {.rows = rows,
                                                .width = width,
                                                .input = input.data(),
                                                .mean = mean.data(),
                                                .rstd = rstd.data(),
                                                .output_gradient = dy.data(),
                                                .gamma_gradient = {gamma_sums.data(), &gamma_state, 8},
                                                .beta_gradient = {gamma_sums.data(), &gamma_state, 8}});
    };
    auto const join = [&](floats const& stream, floats& residual, floats& normal, floats& mean, floats& rstd) {
        host::residual_norm_forward(pool, {.rows = rows,
                                           .width = width,
                                           .stream = stream.data(),
                                           .branch = branch.data(),
                                           .drop = drop,
                                           .gamma = gamma.data(),
                                           .beta = beta.data(),
                                           .residual = residual.data(),
                                           .output = normal.data(),
                                           .mean = mean.data(),
                                           .rstd = rstd.data()});
    };
    auto const split = [&](floats const& residual, floats const& mean, floats const& rstd, bool bypass) {
        norm_weights(residual, mean, rstd, d_normal);
        host::residual_norm_backward(pool, {.rows = rows,
                                            .width = width,
                                            .residual = residual.data(),
                                            .gamma = gamma.data(),
                                            .mean = mean.data(),
                                            .rstd = rstd.data(),
                                            .output_gradient = d_normal.data(),
                                            .bypass_gradient = bypass ? d_residual.data() : nullptr,
                                            .drop = drop,
                                            .stream_gradient = d_residual.data(),
                                            .branch_gradient = d_branch.data()});
    };
    floats final_normal(rows * width);
    floats final_mean(rows);
    floats final_rstd(rows);

    for (auto _ : benchmark_state) {
        host::embedding_forward(pool, {.batch = batch,
                                       .length = length,
                                       .width = width,
                                       .vocabulary = vocabulary,
                                       .tokens = tokens.data(),
                                       .token_table = tied.weight.data(),
                                       .position_table = positions.data(),
                                       .drop = drop,
                                       .output = x.data()});
        host::layer_norm_forward(pool, {.rows = rows,
                                        .width = width,
                                        .input = x.data(),
                                        .gamma = gamma.data(),
                                        .beta = beta.data(),
                                        .output = blocks[0].normal1.data(),
                                        .mean = blocks[0].mean1.data(),
                                        .rstd = blocks[0].rstd1.data()});
        floats const* stream = &x;
        for (std::size_t l = 0; l < blocks.size(); ++l) {
            auto& b = blocks[l];
            b.attention_in.forward(pool, b.normal1, b.qkv);
            host::attention_forward(pool, {.batch = batch,
                                           .length = length,
                                           .width = width,
                                           .heads = heads,
                                           .qkv = b.qkv.data(),
                                           .drop = drop,
                                           .output = b.mixed.data(),
                                           .log_sum_exp = b.log_sum_exp.data()});
            b.attention_out.forward(pool, b.mixed, branch);
            join(*stream, b.residual1, b.normal2, b.mean2, b.rstd2);
            b.up.forward(pool, b.normal2, b.before_gelu, &b.hidden);
            b.down.forward(pool, b.hidden, branch);
            bool const last = l + 1 == blocks.size();
            join(b.residual1, b.residual2, last ? final_normal : blocks[l + 1].normal1, last ? final_mean : blocks[l + 1].mean1,
                 last ? final_rstd : blocks[l + 1].rstd1);
            stream = &b.residual2;
        }
        tied.forward(pool, final_normal, logits);
        host::cross_entropy_fused(pool, {.rows = rows, .vocabulary = vocabulary, .logits = logits.data(), .targets = tokens.data(), .loss = &loss});
        tied.backward(pool, final_normal, logits, d_normal);
        split(blocks.back().residual2, final_mean, final_rstd, false);
        for (std::size_t l = blocks.size(); l-- > 0;) {
            auto& b = blocks[l];
            b.down.backward(pool, b.hidden, d_branch, d_hidden);
            host::gelu_backward(
                pool, {.count = rows * 4 * width, .input = b.before_gelu.data(), .output_gradient = d_hidden.data(), .input_gradient = d_hidden.data()});
            b.up.backward(pool, b.normal2, d_hidden, d_normal);
            split(b.residual1, b.mean2, b.rstd2, true);
            b.attention_out.backward(pool, b.mixed, d_branch, d_normal);
            host::attention_backward(pool, {.batch = batch,
                                            .length = length,
                                            .width = width,
                                            .heads = heads,
                                            .qkv = b.qkv.data(),
                                            .output = b.mixed.data(),
                                            .log_sum_exp = b.log_sum_exp.data(),
                                            .output_gradient = d_normal.data(),
                                            .drop = drop,
                                            .qkv_gradient = d_qkv.data()});
            b.attention_in.backward(pool, b.normal1, d_qkv, d_normal);
            if (l > 0) {
                split(blocks[l - 1].residual2, b.mean1, b.rstd1, true);
            } else {
                norm_weights(x, b.mean1, b.rstd1, d_normal);
                host::layer_norm_backward_input(pool, {.rows = rows,
                                                       .width = width,
                                                       .input = x.data(),
                                                       .gamma = gamma.data(),
                                                       .mean = b.mean1.data(),
                                                       .rstd = b.rstd1.data(),
                                                       .output_gradient = d_normal.data(),
                                                       .bypass_gradient = d_residual.data(),
                                                       .input_gradient = d_residual.data()});
            }
        }
        host::embedding_backward_weight(pool, {.batch = batch,
                                               .length = length,
                                               .width = width,
                                               .vocabulary = vocabulary,
                                               .tokens = tokens.data(),
                                               .output_gradient = d_residual.data(),
                                               .drop = drop,
                                               .token_gradient = {token_sums.data(), &token_state, 8},
                                               .position_gradient = {position_sums.data(), &token_state, 8}});
    }
    double const products = 6.0 * rows * (static_cast<double>(layers) * 12 * width * width + static_cast<double>(vocabulary) * width);
    benchmark_state.counters["GFLOP/s"] = benchmark::Counter(products * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
    benchmark_state.counters["tokens/s"] = benchmark::Counter(rows, benchmark::Counter::kIsIterationInvariantRate);
}

/// 1024^3 products, one per thread at a time.
void gemm_peak(benchmark::State& state)
{
    tile_pool pool{static_cast<int>(state.range(0))};
    std::int64_t const n = 1024;
    auto const a = values(n * n, 1);
    auto const b = values(n * n, 1);
    floats c(static_cast<std::size_t>(n * n * pool.threads()));
    for (auto _ : state) {
        pool.run(pool.threads(), [&](std::int64_t t, int) {
            sgemm({.m = n, .n = n, .k = n, .a = a.data(), .a_row = n, .b = b.data(), .b_row = n, .c = c.data() + t * n * n, .c_row = n});
        });
    }
    state.counters["GFLOP/s"] = benchmark::Counter(2.0 * 1024 * 1024 * 1024e-9 * pool.threads(), benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(gemm_peak)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(microbatch)->ArgNames({"threads", "exact"})->ArgsProduct({{1, 2}, {0, 1}})->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
