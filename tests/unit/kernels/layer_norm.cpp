// SPDX-License-Identifier: Apache-2.0
#include "kernels/layer_norm/layer_norm.hpp"

#include <tuple>

#include "support.hpp"

using namespace rheo;
using namespace support;

namespace {

struct shape {
    std::int64_t rows;
    std::int64_t width;
};
constexpr shape shapes[] = {{1, 2}, {3, 17}, {5, 64}, {33, 100}, {70, 769}};

/// Everything forward and backward make, in double by the definition.
struct reference {
    doubles output, mean, rstd, input_gradient, gamma_gradient, beta_gradient;

    reference(shape s, doubles const& x, doubles const& gamma, doubles const& beta, doubles const& dy, doubles const* bypass)
        : output(x.size()), mean(size(s.rows)), rstd(size(s.rows)), input_gradient(x.size()), gamma_gradient(size(s.width)), beta_gradient(size(s.width))
    {
        definition::layer_norm_forward<fp64>({.rows = s.rows,
                                              .width = s.width,
                                              .input = x.data(),
                                              .gamma = gamma.data(),
                                              .beta = beta.data(),
                                              .output = output.data(),
                                              .mean = mean.data(),
                                              .rstd = rstd.data()});
        definition::layer_norm_backward_input<fp64>({.rows = s.rows,
                                                     .width = s.width,
                                                     .input = x.data(),
                                                     .gamma = gamma.data(),
                                                     .mean = mean.data(),
                                                     .rstd = rstd.data(),
                                                     .output_gradient = dy.data(),
                                                     .bypass_gradient = bypass != nullptr ? bypass->data() : nullptr,
                                                     .input_gradient = input_gradient.data()});
        definition::layer_norm_backward_weight<fp64>({.rows = s.rows,
                                                      .width = s.width,
                                                      .input = x.data(),
                                                      .mean = mean.data(),
                                                      .rstd = rstd.data(),
                                                      .output_gradient = dy.data(),
                                                      .gamma_gradient = {gamma_gradient.data()},
                                                      .beta_gradient = {beta_gradient.data()}});
    }
};

}  // namespace

TEST_CASE("layer norm: gradients are the derivatives")
{
    shape const s{3, 7};
    auto x = wide(normal(s.rows * s.width, 1));
    auto gamma = wide(normal(s.width, 2));
    auto beta = wide(normal(s.width, 3));
    auto const dy = wide(normal(s.rows * s.width, 4));
    auto const bypass = wide(normal(s.rows * s.width, 5));
    reference const r{s, x, gamma, beta, dy, &bypass};
    auto const loss = [&] { return dot(reference{s, x, gamma, beta, dy, nullptr}.output, dy) + dot(x, bypass); };
    check_derivative(x, r.input_gradient, loss);
    check_derivative(gamma, r.gamma_gradient, loss);
    check_derivative(beta, r.beta_gradient, loss);
}

TEST_CASE("layer norm: host matches double")
{
    tile_pool pool{2};
    for (auto const& s : shapes) {
        for (float const mean_of_input : {0.0F, 10.0F}) {
            INFO(s.rows << " x " << s.width << ", mean " << mean_of_input);
            std::int64_t const n = s.rows * s.width;
            auto const x = normal(n, 1, 2.0F, mean_of_input);
            auto const gamma = normal(s.width, 2, 0.3F, 1.0F);
            auto const beta = normal(s.width, 3);
            auto const dy = normal(n, 4);
            auto const bypass = normal(n, 5);
            auto const bypass_wide = wide(bypass);
            reference const r{s, wide(x), wide(gamma), wide(beta), wide(dy), &bypass_wide};
            auto y = poison(n);
            auto mean = poison(s.rows);
            auto rstd = poison(s.rows);
            host::layer_norm_forward(pool, {.rows = s.rows,
                                            .width = s.width,
                                            .input = x.data(),
                                            .gamma = gamma.data(),
                                            .beta = beta.data(),
                                            .output = y.data(),
                                            .mean = mean.data(),
                                            .rstd = rstd.data()});
            // A row's sum is off by (width/64 + 12) u sum|x|, the depth of its lanes and their fold, so the mean by d = that / width.
            // A shift of the mean moves x^ by rstd d and, by its square only, the variance; rstd itself is off by (depth + 8) u,
            // and y rounds four times.
            double const depth = static_cast<double>(s.width) / 64 + 12;
            doubles bound(size(n));
            doubles normal_error(size(s.rows));  // of any x^ of the row
            for (std::int64_t row = 0; row < s.rows; ++row) {
                double largest = 0;
                for (std::int64_t c = 0; c < s.width; ++c) {
                    largest = std::max(largest, std::fabs(static_cast<double>(x[size(row * s.width + c)])));
                }
                double const rs = r.rstd[size(row)];
                double const largest_normal = 2 * largest * rs;
                normal_error[size(row)] = u * ((depth + 2) * largest * rs * 2 + (depth + 8) * largest_normal);
                for (std::int64_t c = 0; c < s.width; ++c) {
                    bound[size(row * s.width + c)] = normal_error[size(row)] * std::fabs(static_cast<double>(gamma[size(c)])) +
                                                     4 * u * (std::fabs(r.output[size(row * s.width + c)]) + std::fabs(static_cast<double>(beta[size(c)])) + 1);
                }
            }
            check_within(y, r.output, bound);
            auto dx = poison(n);
            host::layer_norm_backward_input(pool, {.rows = s.rows,
                                                   .width = s.width,
                                                   .input = x.data(),
                                                   .gamma = gamma.data(),
                                                   .mean = mean.data(),
                                                   .rstd = rstd.data(),
                                                   .output_gradient = dy.data(),
                                                   .bypass_gradient = bypass.data(),
                                                   .input_gradient = dx.data()});
            // dx = rstd (g - mean g - x^ mean(g x^)): with G = max |g| and N = max |x^| every term is at most G (1 + N^2); sums have
            // depth + 8 roundings, x^ enters twice with its own error, and the bypass adds one rounding of the sum.
            for (std::int64_t row = 0; row < s.rows; ++row) {
                double g = 0;
                double normal_size = 0;
                for (std::int64_t c = 0; c < s.width; ++c) {
                    auto const i = size(row * s.width + c);
                    g = std::max(g, std::fabs(static_cast<double>(gamma[size(c)]) * static_cast<double>(dy[i])));
                    normal_size = std::max(normal_size, std::fabs(static_cast<double>(x[i]) - r.mean[size(row)]) * r.rstd[size(row)]);
                }
                for (std::int64_t c = 0; c < s.width; ++c) {
                    auto const i = size(row * s.width + c);
                    bound[i] = r.rstd[size(row)] * g * ((depth + 16) * u * (2 + normal_size * normal_size) + 3 * (normal_size + 1) * normal_error[size(row)]) +
                               2 * u * (std::fabs(r.input_gradient[i]) + std::fabs(bypass_wide[i]));
                }
            }
            check_within(dx, r.input_gradient, bound);
            exact_buffer dgamma{s.width};
            exact_buffer dbeta{s.width};
            host::layer_norm_backward_weight(pool, {.rows = s.rows,
                                                    .width = s.width,
                                                    .input = x.data(),
                                                    .mean = mean.data(),
                                                    .rstd = rstd.data(),
                                                    .output_gradient = dy.data(),
                                                    .gamma_gradient = dgamma.target(),
                                                    .beta_gradient = dbeta.target()});
            // sums of `rows` terms |dy x^| and |dy|, each term off by the error of x^
            doubles gamma_bound(size(s.width));
            doubles beta_bound(size(s.width));
            for (std::int64_t row = 0; row < s.rows; ++row) {
                for (std::int64_t c = 0; c < s.width; ++c) {
                    auto const i = size(row * s.width + c);
                    double const d = std::fabs(static_cast<double>(dy[i]));
                    double const normal_value = std::fabs(static_cast<double>(x[i]) - r.mean[size(row)]) * r.rstd[size(row)];
                    gamma_bound[size(c)] += d * (normal_error[size(row)] + static_cast<double>(s.rows + 4) * u * normal_value);
                    beta_bound[size(c)] += d * static_cast<double>(s.rows) * u;
                }
            }
            for (std::size_t c = 0; c < gamma_bound.size(); ++c) {
                gamma_bound[c] += 1e-7 * std::fabs(r.gamma_gradient[c]) + fixed_error(dgamma);
                beta_bound[c] += 1e-7 * std::fabs(r.beta_gradient[c]) + fixed_error(dbeta);
            }
            check_within(dgamma.values(), r.gamma_gradient, gamma_bound);
            check_within(dbeta.values(), r.beta_gradient, beta_bound);
        }
    }
}

TEST_CASE("layer norm: threads change no bit; works in place")
{
    for (auto const& s : shapes) {
        std::int64_t const n = s.rows * s.width;
        auto const x = normal(n, 1);
        auto const gamma = normal(s.width, 2);
        auto const beta = normal(s.width, 3);
        auto const dy = normal(n, 4);
        auto const bypass = normal(n, 5);
        check_threads_change_no_bit([&](tile_pool& pool) {
            auto y = poison(n);
            auto mean = poison(s.rows);
            auto rstd = poison(s.rows);
            host::layer_norm_forward(pool, {.rows = s.rows,
                                            .width = s.width,
                                            .input = x.data(),
                                            .gamma = gamma.data(),
                                            .beta = beta.data(),
                                            .output = y.data(),
                                            .mean = mean.data(),
                                            .rstd = rstd.data()});
            auto const backward = [&](float const* g, float const* b, float* out) {
                host::layer_norm_backward_input(pool, {.rows = s.rows,
                                                       .width = s.width,
                                                       .input = x.data(),
                                                       .gamma = gamma.data(),
                                                       .mean = mean.data(),
                                                       .rstd = rstd.data(),
                                                       .output_gradient = g,
                                                       .bypass_gradient = b,
                                                       .input_gradient = out});
            };
            auto dx = poison(n);
            backward(dy.data(), bypass.data(), dx.data());
            auto first = dy;
            backward(first.data(), bypass.data(), first.data());
            auto second = bypass;
            backward(dy.data(), second.data(), second.data());
            CHECK(bits(first) == bits(dx));
            CHECK(bits(second) == bits(dx));
            exact_buffer dgamma{s.width};
            exact_buffer dbeta{s.width};
            host::layer_norm_backward_weight(pool, {.rows = s.rows,
                                                    .width = s.width,
                                                    .input = x.data(),
                                                    .mean = mean.data(),
                                                    .rstd = rstd.data(),
                                                    .output_gradient = dy.data(),
                                                    .gamma_gradient = dgamma.target(),
                                                    .beta_gradient = dbeta.target()});
            // one of the two alone, the other left out, is the same
            exact_buffer only_gamma{s.width};
            exact_buffer only_beta{s.width};
            auto const weight = [&](gradient_sum<fp32> g, gradient_sum<fp32> b) {
                host::layer_norm_backward_weight(pool, {.rows = s.rows,
                                                        .width = s.width,
                                                        .input = x.data(),
                                                        .mean = mean.data(),
                                                        .rstd = rstd.data(),
                                                        .output_gradient = dy.data(),
                                                        .gamma_gradient = g,
                                                        .beta_gradient = b});
            };
            weight(only_gamma.target(), {});
            weight({}, only_beta.target());
            CHECK(only_gamma == dgamma);
            CHECK(only_beta == dbeta);
            return std::tuple{bits(y), bits(mean), bits(rstd), bits(dx), dgamma, dbeta};
        });
    }
}
