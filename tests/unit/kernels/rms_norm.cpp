// SPDX-License-Identifier: Apache-2.0
#include "kernels/rms_norm/rms_norm.hpp"

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
    doubles output, rstd, input_gradient, gamma_gradient;

    reference(shape s, doubles const& x, doubles const& gamma, doubles const& dy, doubles const* bypass)
        : output(x.size()), rstd(size(s.rows)), input_gradient(x.size()), gamma_gradient(size(s.width))
    {
        definition::rms_norm_forward<fp64>(
            {.rows = s.rows, .width = s.width, .input = x.data(), .gamma = gamma.data(), .output = output.data(), .rstd = rstd.data()});
        definition::rms_norm_backward_input<fp64>({.rows = s.rows,
                                                   .width = s.width,
                                                   .input = x.data(),
                                                   .gamma = gamma.data(),
                                                   .rstd = rstd.data(),
                                                   .output_gradient = dy.data(),
                                                   .bypass_gradient = bypass != nullptr ? bypass->data() : nullptr,
                                                   .input_gradient = input_gradient.data()});
        definition::rms_norm_backward_weight<fp64>({.rows = s.rows,
                                                    .width = s.width,
                                                    .input = x.data(),
                                                    .rstd = rstd.data(),
                                                    .output_gradient = dy.data(),
                                                    .gamma_gradient = {gamma_gradient.data()}});
    }
};

/// The same on the host, in one go.
struct result {
    floats output, rstd, input_gradient;
    exact_buffer gamma_gradient;

    result(tile_pool& pool, shape s, floats const& x, floats const& gamma, floats const& dy, floats const& bypass)
        : output(poison(std::ssize(x))), rstd(poison(s.rows)), input_gradient(poison(std::ssize(x))), gamma_gradient(s.width)
    {
        host::rms_norm_forward(pool,
                               {.rows = s.rows, .width = s.width, .input = x.data(), .gamma = gamma.data(), .output = output.data(), .rstd = rstd.data()});
        backward(pool, s, x, gamma, dy.data(), bypass.data(), input_gradient.data());
        host::rms_norm_backward_weight(pool, {.rows = s.rows,
                                              .width = s.width,
                                              .input = x.data(),
                                              .rstd = rstd.data(),
                                              .output_gradient = dy.data(),
                                              .gamma_gradient = gamma_gradient.target()});
    }

    void backward(tile_pool& pool, shape s, floats const& x, floats const& gamma, float const* dy, float const* bypass, float* out) const
    {
        host::rms_norm_backward_input(pool, {.rows = s.rows,
                                             .width = s.width,
                                             .input = x.data(),
                                             .gamma = gamma.data(),
                                             .rstd = rstd.data(),
                                             .output_gradient = dy,
                                             .bypass_gradient = bypass,
                                             .input_gradient = out});
    }
};

}  // namespace

TEST_CASE("rms norm: gradients are the derivatives")
{
    shape const s{3, 7};
    auto x = wide(normal(s.rows * s.width, 1));
    auto gamma = wide(normal(s.width, 2));
    auto const dy = wide(normal(s.rows * s.width, 4));
    auto const bypass = wide(normal(s.rows * s.width, 5));
    reference const r{s, x, gamma, dy, &bypass};
    auto const loss = [&] { return dot(reference{s, x, gamma, dy, nullptr}.output, dy) + dot(x, bypass); };
    check_derivative(x, r.input_gradient, loss);
    check_derivative(gamma, r.gamma_gradient, loss);
}

TEST_CASE("rms norm: host matches double")
{
    tile_pool pool{2};
    for (auto const& s : shapes) {
        INFO(s.rows << " x " << s.width);
        std::int64_t const n = s.rows * s.width;
        auto const x = normal(n, 1, 2.0F);
        auto const gamma = normal(s.width, 2, 0.3F, 1.0F);
        auto const dy = normal(n, 4);
        auto const bypass = normal(n, 5);
        auto const bypass_wide = wide(bypass);
        reference const r{s, wide(x), wide(gamma), wide(dy), &bypass_wide};
        result const h{pool, s, x, gamma, dy, bypass};
        // A row's sum of squares is off, relatively, by (width / 64 + 12) u, the depth of its lanes and their fold; the root halves that,
        // division and root round once each, and x rstd gamma twice more.
        double const depth = static_cast<double>(s.width) / 64 + 12;
        double const normal_error = (depth / 2 + 4) * u;  // relative, of any x^
        doubles bound(size(n));
        for (std::size_t i = 0; i < bound.size(); ++i) {
            bound[i] = (normal_error + 2 * u) * std::fabs(r.output[i]);
        }
        check_within(h.output, r.output, bound);
        // dx = rstd (g - x^ mean(g x^)): with G = max |g| and N = max |x^| both terms are at most G (1 + N^2); the mean has depth + 4
        // roundings and the error of x^, which enters twice, and the bypass adds one rounding of the sum.
        doubles gamma_bound(size(s.width));
        for (std::int64_t row = 0; row < s.rows; ++row) {
            double g = 0;
            double normal_size = 0;
            for (std::int64_t c = 0; c < s.width; ++c) {
                auto const i = size(row * s.width + c);
                auto const value = std::fabs(static_cast<double>(x[i])) * r.rstd[size(row)];
                g = std::max(g, std::fabs(static_cast<double>(gamma[size(c)]) * static_cast<double>(dy[i])));
                normal_size = std::max(normal_size, value);
                gamma_bound[size(c)] += std::fabs(static_cast<double>(dy[i])) * value * (normal_error + static_cast<double>(s.rows + 4) * u);
            }
            for (std::int64_t c = 0; c < s.width; ++c) {
                auto const i = size(row * s.width + c);
                bound[i] = r.rstd[size(row)] * g * (1 + normal_size * normal_size) * ((depth + 8) * u + 3 * normal_error) +
                           2 * u * (std::fabs(r.input_gradient[i]) + std::fabs(bypass_wide[i]));
            }
        }
        check_within(h.input_gradient, r.input_gradient, bound);
        for (std::size_t c = 0; c < gamma_bound.size(); ++c) {
            gamma_bound[c] += 1e-7 * std::fabs(r.gamma_gradient[c]) + fixed_error(h.gamma_gradient);
        }
        check_within(h.gamma_gradient.values(), r.gamma_gradient, gamma_bound);
    }
}

TEST_CASE("rms norm: threads change no bit; works in place")
{
    for (auto const& s : shapes) {
        std::int64_t const n = s.rows * s.width;
        auto const x = normal(n, 1);
        auto const gamma = normal(s.width, 2);
        auto const dy = normal(n, 4);
        auto const bypass = normal(n, 5);
        check_threads_change_no_bit([&](tile_pool& pool) {
            result const h{pool, s, x, gamma, dy, bypass};
            auto first = dy;
            h.backward(pool, s, x, gamma, first.data(), bypass.data(), first.data());
            auto second = bypass;
            h.backward(pool, s, x, gamma, dy.data(), second.data(), second.data());
            CHECK(bits(first) == bits(h.input_gradient));
            CHECK(bits(second) == bits(h.input_gradient));
            return std::tuple{bits(h.output), bits(h.rstd), bits(h.input_gradient), h.gamma_gradient};
        });
    }
}
