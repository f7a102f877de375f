// SPDX-License-Identifier: Apache-2.0
#include "kernels/layer_norm/layer_norm.hpp"

#include "../laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

struct shape {
    std::int64_t rows;
    std::int64_t width;
};

template <class T>
struct inputs {
    shape s;
    std::vector<T> x, gamma, beta, dy, bypass;

    explicit inputs(shape of)
        : s{of},
          x{stored<T>(normal(of.rows * of.width, 1, 2.0F, 0.5F))},
          gamma{stored<T>(normal(of.width, 2, 0.3F, 1.0F))},
          beta{stored<T>(normal(of.width, 5, 0.3F))},
          dy{stored<T>(normal(of.rows * of.width, 3))},
          bypass{stored<T>(normal(of.rows * of.width, 4))}
    {
    }
};

template <class T, class Compute>
struct outputs {
    std::vector<T> y, dx;
    std::vector<Compute> mean, rstd;

    friend bool operator==(outputs const& a, outputs const& b) { return all_bits(a.y, a.dx, a.mean, a.rstd) == all_bits(b.y, b.dx, b.mean, b.rstd); }
};

template <dtype_policy Policy, class T>
outputs<storage_t<Policy>, compute_t<Policy>> defined(inputs<T> const& in)
{
    using storage = storage_t<Policy>;
    auto const x = as<storage>(in.x), gamma = as<storage>(in.gamma), beta = as<storage>(in.beta), dy = as<storage>(in.dy), bypass = as<storage>(in.bypass);
    std::vector<compute_t<Policy>> const row(size(in.s.rows));
    outputs<storage, compute_t<Policy>> out{x, x, row, row};
    definition::layer_norm_forward<Policy>({.rows = in.s.rows,
                                            .width = in.s.width,
                                            .input = x.data(),
                                            .gamma = gamma.data(),
                                            .beta = beta.data(),
                                            .output = out.y.data(),
                                            .mean = out.mean.data(),
                                            .rstd = out.rstd.data()});
    definition::layer_norm_backward_input<Policy>({.rows = in.s.rows,
                                                   .width = in.s.width,
                                                   .input = x.data(),
                                                   .gamma = gamma.data(),
                                                   .mean = out.mean.data(),
                                                   .rstd = out.rstd.data(),
                                                   .output_gradient = dy.data(),
                                                   .bypass_gradient = bypass.data(),
                                                   .input_gradient = out.dx.data()});
    return out;
}

template <class T>
outputs<T, float> computed(inputs<T> const& in, std::size_t offset = 0, std::int64_t rows = -1)
{
    rows = rows < 0 ? in.s.rows : rows;
    device::array<T> const x{in.x, offset}, gamma{in.gamma}, beta{in.beta}, dy{in.dy}, bypass{in.bypass}, y{rows * in.s.width}, dx{rows * in.s.width, offset};
    device::array<float> const mean{rows}, rstd{rows};
    cuda::layer_norm_forward<policy<T>>(device::queue(), {.rows = rows,
                                                          .width = in.s.width,
                                                          .input = x.data(),
                                                          .gamma = gamma.data(),
                                                          .beta = beta.data(),
                                                          .output = y.data(),
                                                          .mean = mean.data(),
                                                          .rstd = rstd.data()});
    auto const backward = [&](T const* from, T const* around, T* to) {
        cuda::layer_norm_backward_input<policy<T>>(device::queue(), {.rows = rows,
                                                                     .width = in.s.width,
                                                                     .input = x.data(),
                                                                     .gamma = gamma.data(),
                                                                     .mean = mean.data(),
                                                                     .rstd = rstd.data(),
                                                                     .output_gradient = from,
                                                                     .bypass_gradient = around,
                                                                     .input_gradient = to});
    };
    backward(dy.data(), bypass.data(), dx.data());
    if (rows == in.s.rows) {
        device::array<T> const first{in.dy}, second{in.bypass};  // the result may take the place of either gradient
        backward(first.data(), bypass.data(), first.data());
        backward(dy.data(), second.data(), second.data());
        CHECK(all_bits(first.host(), second.host()) == all_bits(dx.host(), dx.host()));
    }
    for (auto const* a : {&x, &gamma, &beta, &dy, &bypass, &y, &dx}) {
        CHECK(a->margins_kept());
    }
    CHECK((mean.margins_kept() && rstd.margins_kept()));
    return {y.host(), dx.host(), mean.host(), rstd.host()};
}

struct weights {
    exact_buffer gamma, beta;
    friend bool operator==(weights const&, weights const&) = default;
};

template <class T>
weights weight(inputs<T> const& in, floats const& mean, floats const& rstd, bool with_gamma = true, bool with_beta = true)
{
    device::array<T> const x{in.x}, dy{in.dy};
    device::array<float> const middle{mean}, inverse{rstd};
    device_sums const gamma{exact_buffer{in.s.width}}, beta{exact_buffer{in.s.width, 28}};
    device::scratch const scratch{cuda::layer_norm_backward_weight_workspace_bytes(in.s.rows, in.s.width)};
    cuda::layer_norm_backward_weight<policy<T>>(device::queue(), scratch,
                                                {.rows = in.s.rows,
                                                 .width = in.s.width,
                                                 .input = x.data(),
                                                 .mean = middle.data(),
                                                 .rstd = inverse.data(),
                                                 .output_gradient = dy.data(),
                                                 .gamma_gradient = with_gamma ? gamma.target() : gradient_sum<bf16>{},
                                                 .beta_gradient = with_beta ? beta.target() : gradient_sum<bf16>{}});
    CHECK(scratch.counters_are_zero());
    return {gamma.host(), beta.host()};
}

}  // namespace

TEMPLATE_TEST_CASE("cuda layer norm: matches double like the definition", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : {shape{1, 1}, shape{3, 7}, shape{5, 33}, shape{2, 1000}, shape{9, 264}, shape{300, 40}, shape{1, 12288}}) {
        INFO(s.rows << " x " << s.width);
        inputs<T> const in{s};
        auto const d = same_in_every_order([&] { return computed(in); });
        auto const r = defined<fp64>(in);
        auto const own = defined<policy<T>>(in);
        // A thread adds at most 32 elements, then come ten levels of the tree: 42 roundings of each sum, relative to the sum of sizes. The mean's
        // error shifts every element, which rstd makes relative; that of the squares enters by its half.
        double const depth = 46;
        doubles bound(r.y.size());
        for (std::int64_t row = 0; row < s.rows; ++row) {
            double sizes = 0;
            double g = 0;
            double largest = 0;
            for (std::int64_t c = 0; c < s.width; ++c) {
                auto const i = size(row * s.width + c);
                sizes += std::fabs(double(float(in.x[i]))) / double(s.width);
                g = std::max(g, std::fabs(double(float(in.gamma[size(c)])) * double(float(in.dy[i]))));
                largest = std::max(largest, std::fabs((double(float(in.x[i])) - r.mean[size(row)]) * r.rstd[size(row)]));
            }
            double const shift = (depth * sizes + 2 * std::fabs(r.mean[size(row)])) * u * r.rstd[size(row)];  // of any x^
            double const relative = (depth / 2 + 6) * u + shift * shift;
            double const normal_error = shift + relative * largest;
            CHECK(std::fabs(double(d.mean[size(row)]) - r.mean[size(row)]) * r.rstd[size(row)] <= shift);
            CHECK(std::fabs(double(d.rstd[size(row)]) - r.rstd[size(row)]) <= (relative + shift) * r.rstd[size(row)]);
            for (std::int64_t c = 0; c < s.width; ++c) {
                auto const i = size(row * s.width + c);
                double const gamma = std::fabs(double(float(in.gamma[size(c)])));
                bound[i] = gamma * (normal_error + 4 * u * largest) + (2 * u + roundoff<T>)*(std::fabs(r.y[i]) + normal_error * gamma);
            }
            doubles const error(bound.begin() + row * s.width, bound.begin() + (row + 1) * s.width);
            check_within(single(std::vector<T>(d.y.begin() + row * s.width, d.y.begin() + (row + 1) * s.width)),
                         {r.y.begin() + row * s.width, r.y.begin() + (row + 1) * s.width}, error);
            for (std::int64_t c = 0; c < s.width; ++c) {
                auto const i = size(row * s.width + c);
                bound[i] = r.rstd[size(row)] * g * (2 + largest * largest) * (2 * depth * u + relative + roundoff<T>)+r.rstd[size(row)] * g * 4 *
                               (1 + largest) * normal_error +
                           2 * roundoff<T> * (std::fabs(r.dx[i]) + std::fabs(double(float(in.bypass[i]))));
            }
        }
        check_within(single(d.dx), r.dx, bound);
        if (s.width > 1) {  // of one element the norm is beta, and nothing but rounding is left to compare
            check_no_worse(d.y, own.y, r.y);
            check_no_worse(d.dx, own.dx, r.dx);
        }
    }
}

TEMPLATE_TEST_CASE("cuda layer norm: weight gradients are exact column sums", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : {shape{1, 1}, shape{3, 7}, shape{33, 130}, shape{257, 64}, shape{1300, 9}}) {
        INFO(s.rows << " x " << s.width);
        inputs<T> const in{s};
        auto const r = defined<fp64>(in);
        floats const mean{r.mean.begin(), r.mean.end()};
        floats const rstd{r.rstd.begin(), r.rstd.end()};
        auto const d = same_in_every_order([&] { return weight(in, mean, rstd); });
        doubles gamma(size(s.width)), beta(gamma), gamma_bound(gamma), beta_bound(gamma);
        for (std::int64_t c = 0; c < s.width; ++c) {
            double gammas = 0;
            double betas = 0;
            for (std::int64_t row = 0; row < s.rows; ++row) {
                auto const i = size(row * s.width + c);
                double const dy = double(float(in.dy[i]));
                double const x = double(float(in.x[i]));
                double const normal = (x - double(mean[size(row)])) * double(rstd[size(row)]);
                gamma[size(c)] += dy * normal;
                beta[size(c)] += dy;
                gammas += std::fabs(dy) * (std::fabs(normal) + std::fabs(x) * double(rstd[size(row)]));
                betas += std::fabs(dy);
            }
            // a thread adds 8 rows, two levels in the warp and the warps of a block: 8 + 2 + 8, then the groups of rows
            double const depth = 20 + static_cast<double>(s.rows) / 256 + 4;
            gamma_bound[size(c)] = depth * u * gammas + fixed_error(d.gamma) + u * std::fabs(gamma[size(c)]);
            beta_bound[size(c)] = depth * u * betas + fixed_error(d.beta) + u * std::fabs(beta[size(c)]);
        }
        check_within(d.gamma.values(), gamma, gamma_bound);
        check_within(d.beta.values(), beta, beta_bound);
        auto const only_gamma = weight(in, mean, rstd, true, false);
        auto const only_beta = weight(in, mean, rstd, false, true);
        CHECK((only_gamma.gamma == d.gamma && only_gamma.beta == exact_buffer{s.width, 28}));
        CHECK((only_beta.beta == d.beta && only_beta.gamma == exact_buffer{s.width}));
    }
}

TEMPLATE_TEST_CASE("cuda layer norm: bits of a row depend on the row only", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : {shape{9, 264}, shape{6, 1000}, shape{5, 31}}) {
        INFO(s.rows << " x " << s.width);
        inputs<T> const in{s};
        auto const all = computed(in);
        CHECK(computed(in, 1) == all);  // read by elements
        auto some = all;
        for (auto* values : {&some.y, &some.dx}) {
            values->resize(size(3 * s.width));
        }
        some.mean.resize(3);
        some.rstd.resize(3);
        CHECK(computed(in, 0, 3) == some);
    }
}
