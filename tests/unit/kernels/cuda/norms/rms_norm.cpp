// SPDX-License-Identifier: Apache-2.0
#include "kernels/rms_norm/rms_norm.hpp"

#include "../laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

struct shape {
    std::int64_t rows;
    std::int64_t width;
};
constexpr shape shapes[] = {{1, 1}, {3, 7}, {5, 33}, {3, 64}, {2, 1000}, {9, 264}, {300, 40}, {2, 4104}};

template <class T>
struct inputs {
    shape s;
    std::vector<T> x, gamma, dy, bypass;

    explicit inputs(shape of)
        : s{of},
          x{stored<T>(normal(of.rows * of.width, 1, 2.0F))},
          gamma{stored<T>(normal(of.width, 2, 0.3F, 1.0F))},
          dy{stored<T>(normal(of.rows * of.width, 3))},
          bypass{stored<T>(normal(of.rows * of.width, 4))}
    {
    }

    /// The first `rows` of them.
    inputs first(std::int64_t rows) const
    {
        inputs result{*this};
        result.s.rows = rows;
        for (auto* all : {&result.x, &result.dy, &result.bypass}) {
            all->resize(size(rows * s.width));
        }
        return result;
    }
};

template <class T, class Compute>
struct outputs {
    std::vector<T> y, dx;
    std::vector<Compute> rstd;

    friend bool operator==(outputs const& a, outputs const& b)
    {
        return bits(single(a.y)) == bits(single(b.y)) && bits(single(a.dx)) == bits(single(b.dx)) && bits(a.rstd) == bits(b.rstd);
    }
};

/// By the definition, in any policy.
template <dtype_policy Policy, class T>
outputs<storage_t<Policy>, compute_t<Policy>> defined(inputs<T> const& in)
{
    auto const x = as<storage_t<Policy>>(in.x);
    auto const gamma = as<storage_t<Policy>>(in.gamma);
    auto const dy = as<storage_t<Policy>>(in.dy);
    auto const bypass = as<storage_t<Policy>>(in.bypass);
    outputs<storage_t<Policy>, compute_t<Policy>> out{x, x, std::vector<compute_t<Policy>>(size(in.s.rows))};
    definition::rms_norm_forward<Policy>(
        {.rows = in.s.rows, .width = in.s.width, .input = x.data(), .gamma = gamma.data(), .output = out.y.data(), .rstd = out.rstd.data()});
    definition::rms_norm_backward_input<Policy>({.rows = in.s.rows,
                                                 .width = in.s.width,
                                                 .input = x.data(),
                                                 .gamma = gamma.data(),
                                                 .rstd = out.rstd.data(),
                                                 .output_gradient = dy.data(),
                                                 .bypass_gradient = bypass.data(),
                                                 .input_gradient = out.dx.data()});
    return out;
}

/// On the device; where the rows of a result begin, `offset` elements may lie before them.
template <class T>
outputs<T, float> computed(inputs<T> const& in, std::size_t offset = 0)
{
    device::array<T> const x{in.x, offset}, gamma{in.gamma}, dy{in.dy}, bypass{in.bypass};
    device::array<T> const y{in.s.rows * in.s.width, offset}, dx{in.s.rows * in.s.width};
    device::array<float> const rstd{in.s.rows};
    cuda::rms_norm_forward<policy<T>>(
        device::queue(), {.rows = in.s.rows, .width = in.s.width, .input = x.data(), .gamma = gamma.data(), .output = y.data(), .rstd = rstd.data()});
    auto const backward = [&](T const* from, T const* around, T* to) {
        cuda::rms_norm_backward_input<policy<T>>(device::queue(), {.rows = in.s.rows,
                                                                   .width = in.s.width,
                                                                   .input = x.data(),
                                                                   .gamma = gamma.data(),
                                                                   .rstd = rstd.data(),
                                                                   .output_gradient = from,
                                                                   .bypass_gradient = around,
                                                                   .input_gradient = to});
    };
    backward(dy.data(), bypass.data(), dx.data());
    device::array<T> const first{in.dy}, second{in.bypass};  // the result may take the place of either gradient
    backward(first.data(), bypass.data(), first.data());
    backward(dy.data(), second.data(), second.data());
    CHECK(bits(single(first.host())) == bits(single(dx.host())));
    CHECK(bits(single(second.host())) == bits(single(dx.host())));
    for (auto const* a : {&x, &gamma, &dy, &bypass, &y, &dx, &first, &second}) {
        CHECK(a->margins_kept());
    }
    CHECK(rstd.margins_kept());
    return {y.host(), dx.host(), rstd.host()};
}

template <class T>
exact_buffer weight(inputs<T> const& in, floats const& rstd, std::size_t offset = 0)
{
    device::array<T> const x{in.x, offset}, dy{in.dy};
    device::array<float> const inverse{rstd};
    device_sums const sums{exact_buffer{in.s.width}};
    device::scratch const scratch{cuda::rms_norm_backward_weight_workspace_bytes(in.s.rows, in.s.width)};
    cuda::rms_norm_backward_weight<policy<T>>(
        device::queue(), scratch,
        {.rows = in.s.rows, .width = in.s.width, .input = x.data(), .rstd = inverse.data(), .output_gradient = dy.data(), .gamma_gradient = sums.target()});
    CHECK(scratch.counters_are_zero());
    return sums.host();
}

}  // namespace

TEMPLATE_TEST_CASE("cuda rms norm: matches double like the definition", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : shapes) {
        INFO(s.rows << " x " << s.width);
        inputs<T> const in{s};
        auto const d = same_in_every_order([&] { return computed(in); });
        auto const r = defined<fp64>(in);
        auto const own = defined<policy<T>>(in);
        // A thread adds at most 32 squares by fma, then come ten levels of the tree: fewer roundings than the host's loops, whose
        // bound this is otherwise (tests/unit/kernels/rms_norm.cpp); what is stored is rounded once more.
        double const normal_error = ((32.0 + 12) / 2 + 4) * u;
        doubles bound(r.y.size());
        for (std::size_t i = 0; i < bound.size(); ++i) {
            bound[i] = (normal_error + 2 * u + roundoff<T>)*std::fabs(r.y[i]);
        }
        check_within(single(d.y), r.y, bound);
        check_within(d.rstd, r.rstd, magnitudes(doubles(r.rstd.size(), normal_error * *std::max_element(r.rstd.begin(), r.rstd.end()))));
        for (std::int64_t row = 0; row < s.rows; ++row) {
            double g = 0;
            double normal_size = 0;
            for (std::int64_t c = 0; c < s.width; ++c) {
                auto const i = size(row * s.width + c);
                g = std::max(g, std::fabs(double(float(in.gamma[size(c)])) * double(float(in.dy[i]))));
                normal_size = std::max(normal_size, std::fabs(double(float(in.x[i]))) * r.rstd[size(row)]);
            }
            for (std::int64_t c = 0; c < s.width; ++c) {
                auto const i = size(row * s.width + c);
                bound[i] = r.rstd[size(row)] * g * (1 + normal_size * normal_size) * (52 * u + 3 * normal_error + roundoff<T>)+2 * roundoff<T> *
                           (std::fabs(r.dx[i]) + std::fabs(double(float(in.bypass[i]))));
            }
        }
        check_within(single(d.dx), r.dx, bound);
        check_no_worse(d.y, own.y, r.y);
        check_no_worse(d.dx, own.dx, r.dx);
    }
}

TEMPLATE_TEST_CASE("cuda rms norm: weight gradient is the exact column sum", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : {shape{1, 1}, shape{3, 7}, shape{33, 130}, shape{257, 64}, shape{1300, 9}}) {
        INFO(s.rows << " x " << s.width);
        inputs<T> const in{s};
        auto const rstd = defined<fp64>(in).rstd;
        floats const inverse{rstd.begin(), rstd.end()};
        auto const d = same_in_every_order([&] { return weight(in, inverse); });
        CHECK(weight(in, inverse, 1) == d);
        doubles expected(size(s.width));
        doubles bound(size(s.width));
        float largest = 0;
        for (std::int64_t c = 0; c < s.width; ++c) {
            double whole = 0;
            for (std::int64_t row = 0; row < s.rows; ++row) {
                auto const i = size(row * s.width + c);
                double const term = double(float(in.dy[i])) * double(float(in.x[i])) * double(inverse[size(row)]);
                expected[size(c)] += term;
                whole += std::fabs(term);
            }
            // a thread adds 8 rows, four levels in the warp and the warps of a block: 8 + 2 + 8, then the groups of rows
            bound[size(c)] = (18 + static_cast<double>(s.rows) / 256 + 4) * u * whole + fixed_error(d) + u * std::fabs(expected[size(c)]);
        }
        check_within(d.values(), expected, bound);
        for (auto const v : expected) {
            largest = std::max(largest, static_cast<float>(std::fabs(v)));
        }
        CHECK(d.state.max_abs == Approx(largest).epsilon(1e-4));
        CHECK((!d.state.overflow && !d.state.not_finite && d.state.scale_log2 == 30));
    }
}

TEMPLATE_TEST_CASE("cuda rms norm: bits of a row depend on the row only", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : {shape{9, 264}, shape{6, 1000}, shape{5, 31}}) {
        INFO(s.rows << " x " << s.width);
        inputs<T> const in{s};
        auto const all = computed(in);
        CHECK(computed(in, 1) == all);  // read by elements
        auto some = all;
        some.y.resize(size(3 * s.width));
        some.dx.resize(size(3 * s.width));
        some.rstd.resize(3);
        CHECK(computed(in.first(3)) == some);
    }
}

TEST_CASE("cuda rms norm: bad contributions are flagged, left out")
{
    inputs<float> in{{2, 5}};
    in.x = floats(10, 1.0F);
    in.dy = {1, 1e30F, 1, 2, std::numeric_limits<float>::infinity(), 1, 0, 1, 1, 0};
    auto const d = weight(in, {1, 1});
    CHECK((d.state.overflow && d.state.not_finite && d.state.max_abs == 1e30F));
    CHECK(d.values() == floats{2, 0, 2, 3, 0});
}

TEST_CASE("cuda rms norm: too wide is rejected; no rows, no work")
{
    CHECK_THROWS_WITH(cuda::rms_norm_forward<fp32>({}, {.rows = 1, .width = 16385, .input = nullptr, .gamma = nullptr, .output = nullptr, .rstd = nullptr}),
                      Catch::Matchers::ContainsSubstring("at most 16384 floats"));
    CHECK_NOTHROW(cuda::rms_norm_forward<fp32>({}, {.rows = 0, .width = 5, .input = nullptr, .gamma = nullptr, .output = nullptr, .rstd = nullptr}));
}
