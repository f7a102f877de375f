// SPDX-License-Identifier: Apache-2.0
#include "kernels/qk_norm/qk_norm.hpp"

#include "../laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

struct shape {
    std::int64_t rows, heads, kv_heads, width;

    std::int64_t all() const { return heads + 2 * kv_heads; }
    std::int64_t normed() const { return heads + kv_heads; }
    std::int64_t elements() const { return rows * all() * width; }
};
/// Heads of fewer chunks than lanes, as many and more; whole chunks or not; the last block not full.
constexpr shape shapes[] = {{1, 1, 1, 2}, {3, 4, 2, 6}, {5, 3, 1, 64}, {9, 2, 2, 128}, {3, 2, 1, 100}, {2, 1, 1, 520}};

template <class T>
struct inputs {
    shape s;
    std::vector<T> x, query_gamma, key_gamma, dy;

    explicit inputs(shape of)
        : s{of},
          x{stored<T>(normal(of.elements(), 1, 2.0F))},
          query_gamma{stored<T>(normal(of.width, 2, 0.3F, 1.0F))},
          key_gamma{stored<T>(normal(of.width, 3, 0.3F, 1.0F))},
          dy{stored<T>(normal(of.elements(), 4))}
    {
    }
    inputs first(std::int64_t rows) const
    {
        inputs result{*this};
        result.s.rows = rows;
        result.x.resize(size(result.s.elements()));
        result.dy.resize(size(result.s.elements()));
        return result;
    }
};

template <class T, class Compute>
struct outputs {
    std::vector<T> y, dx;
    std::vector<Compute> rstd;  // [heads, rows]

    friend bool operator==(outputs const& a, outputs const& b)
    {
        return bits(single(a.y)) == bits(single(b.y)) && bits(single(a.dx)) == bits(single(b.dx)) && bits(a.rstd) == bits(b.rstd);
    }
};

template <dtype_policy Policy, class T>
outputs<storage_t<Policy>, compute_t<Policy>> defined(inputs<T> const& in)
{
    auto const& s = in.s;
    auto const x = as<storage_t<Policy>>(in.x);
    auto const query_gamma = as<storage_t<Policy>>(in.query_gamma);
    auto const key_gamma = as<storage_t<Policy>>(in.key_gamma);
    auto const dy = as<storage_t<Policy>>(in.dy);
    outputs<storage_t<Policy>, compute_t<Policy>> out{x, x, std::vector<compute_t<Policy>>(size(s.normed() * s.rows))};
    definition::qk_norm_forward<Policy>({.rows = s.rows,
                                         .heads = s.heads,
                                         .kv_heads = s.kv_heads,
                                         .head_width = s.width,
                                         .input = x.data(),
                                         .query_gamma = query_gamma.data(),
                                         .key_gamma = key_gamma.data(),
                                         .output = out.y.data(),
                                         .rstd = out.rstd.data()});
    definition::qk_norm_backward_input<Policy>({.rows = s.rows,
                                                .heads = s.heads,
                                                .kv_heads = s.kv_heads,
                                                .head_width = s.width,
                                                .input = x.data(),
                                                .query_gamma = query_gamma.data(),
                                                .key_gamma = key_gamma.data(),
                                                .rstd = out.rstd.data(),
                                                .output_gradient = dy.data(),
                                                .input_gradient = out.dx.data()});
    return out;
}

template <class T>
outputs<T, float> computed(inputs<T> const& in, std::size_t offset = 0)
{
    auto const& s = in.s;
    device::array<T> const x{in.x, offset}, query_gamma{in.query_gamma}, key_gamma{in.key_gamma}, dy{in.dy}, y{s.elements(), offset}, dx{s.elements()};
    device::array<float> const rstd{s.normed() * s.rows};
    cuda::qk_norm_forward<policy<T>>(device::queue(), {.rows = s.rows,
                                                       .heads = s.heads,
                                                       .kv_heads = s.kv_heads,
                                                       .head_width = s.width,
                                                       .input = x.data(),
                                                       .query_gamma = query_gamma.data(),
                                                       .key_gamma = key_gamma.data(),
                                                       .output = y.data(),
                                                       .rstd = rstd.data()});
    auto const backward = [&](T const* from, T* to) {
        cuda::qk_norm_backward_input<policy<T>>(device::queue(), {.rows = s.rows,
                                                                  .heads = s.heads,
                                                                  .kv_heads = s.kv_heads,
                                                                  .head_width = s.width,
                                                                  .input = x.data(),
                                                                  .query_gamma = query_gamma.data(),
                                                                  .key_gamma = key_gamma.data(),
                                                                  .rstd = rstd.data(),
                                                                  .output_gradient = from,
                                                                  .input_gradient = to});
    };
    backward(dy.data(), dx.data());
    device::array<T> const in_place{in.dy};
    backward(in_place.data(), in_place.data());
    CHECK(bits(single(in_place.host())) == bits(single(dx.host())));
    for (auto const* a : {&x, &query_gamma, &key_gamma, &dy, &y, &dx, &in_place}) {
        CHECK(a->margins_kept());
    }
    CHECK(rstd.margins_kept());
    return {y.host(), dx.host(), rstd.host()};
}

template <class T>
std::pair<exact_buffer, exact_buffer> weights(inputs<T> const& in, floats const& rstd, std::size_t offset = 0)
{
    auto const& s = in.s;
    device::array<T> const x{in.x, offset}, dy{in.dy};
    device::array<float> const inverse{rstd};
    device_sums const queries{exact_buffer{s.width}}, keys{exact_buffer{s.width}};
    device::scratch const scratch{cuda::qk_norm_backward_weight_workspace_bytes(s.rows, s.heads, s.width)};
    cuda::qk_norm_backward_weight<policy<T>>(device::queue(), scratch,
                                             {.rows = s.rows,
                                              .heads = s.heads,
                                              .kv_heads = s.kv_heads,
                                              .head_width = s.width,
                                              .input = x.data(),
                                              .rstd = inverse.data(),
                                              .output_gradient = dy.data(),
                                              .query_gradient = queries.target(),
                                              .key_gradient = keys.target()});
    CHECK(scratch.counters_are_zero());
    return {queries.host(), keys.host()};
}

}  // namespace

TEMPLATE_TEST_CASE("cuda qk norm: matches double like the definition", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : shapes) {
        INFO(s.heads << " heads of " << s.width);
        inputs<T> const in{s};
        auto const d = same_in_every_order([&] { return computed(in); });
        auto const r = defined<fp64>(in);
        auto const own = defined<policy<T>>(in);
        // As of rms_norm's test; a lane adds at most 20 squares, then come five levels of the tree.
        double const normal_error = ((20.0 + 12) / 2 + 4) * u;
        doubles bound(r.y.size());
        for (std::size_t i = 0; i < bound.size(); ++i) {
            bound[i] = (normal_error + 2 * u + roundoff<T>)*std::fabs(r.y[i]);
        }
        check_within(single(d.y), r.y, bound);
        check_within(d.rstd, r.rstd, magnitudes(doubles(r.rstd.size(), normal_error * *std::max_element(r.rstd.begin(), r.rstd.end()))));
        for (std::int64_t number = 0; number < s.rows * s.all(); ++number) {
            auto const row = number / s.all(), head = number % s.all();
            bool const is_normed = head < s.normed();
            double const rstd = is_normed ? r.rstd[size(head * s.rows + row)] : 0;
            double g = 0;
            double normal_size = 0;
            for (std::int64_t c = 0; c < s.width; ++c) {
                auto const i = size(number * s.width + c);
                auto const gamma = double(float(head < s.heads ? in.query_gamma[size(c)] : in.key_gamma[size(c)]));
                g = std::max(g, std::fabs(gamma * double(float(in.dy[i]))));
                normal_size = std::max(normal_size, std::fabs(double(float(in.x[i]))) * rstd);
            }
            for (std::int64_t c = 0; c < s.width; ++c) {
                auto const i = size(number * s.width + c);
                bound[i] = rstd * g * (1 + normal_size * normal_size) * (52 * u + 3 * normal_error + roundoff<T>);  // 0 for the values: their bits
            }
        }
        check_within(single(d.dx), r.dx, bound);
        check_no_worse(d.y, own.y, r.y);
        check_no_worse(d.dx, own.dx, r.dx);
    }
}

TEMPLATE_TEST_CASE("cuda qk norm: weight gradients are exact column sums", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : {shape{1, 1, 1, 2}, shape{3, 4, 2, 6}, shape{33, 5, 1, 130}, shape{130, 3, 2, 64}}) {
        INFO(s.rows << " rows, " << s.heads << " heads of " << s.width);
        inputs<T> const in{s};
        auto const rstd = defined<fp64>(in).rstd;
        floats const inverse{rstd.begin(), rstd.end()};
        auto const d = same_in_every_order([&] { return weights(in, inverse); });
        CHECK(weights(in, inverse, 1) == d);
        for (bool const queries : {true, false}) {
            auto const first = queries ? 0 : s.heads, last = queries ? s.heads : s.normed();
            auto const& got = queries ? d.first : d.second;
            doubles expected(size(s.width)), bound(size(s.width));
            for (std::int64_t c = 0; c < s.width; ++c) {
                double whole = 0;
                for (std::int64_t row = 0; row < s.rows; ++row) {
                    for (auto head = first; head < last; ++head) {
                        auto const i = size((row * s.all() + head) * s.width + c);
                        double const term = double(float(in.dy[i])) * double(float(in.x[i])) * double(inverse[size(head * s.rows + row)]);
                        expected[size(c)] += term;
                        whole += std::fabs(term);
                    }
                }
                bound[size(c)] = (18 + static_cast<double>(s.rows * s.heads) / 256 + 4) * u * whole + fixed_error(got) + u * std::fabs(expected[size(c)]);
            }
            check_within(got.values(), expected, bound);
            CHECK((!got.state.overflow && !got.state.not_finite && got.state.max_abs > 0));
        }
    }
}

TEMPLATE_TEST_CASE("cuda qk norm: bits of a head depend on it only", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : {shape{9, 2, 1, 64}, shape{6, 3, 3, 34}}) {
        inputs<T> const in{s};
        auto const all = computed(in);
        CHECK(computed(in, 1) == all);  // read by elements
        auto const some = computed(in.first(3));
        auto const count = size(3 * s.all() * s.width);
        CHECK(bits(single(some.y)) == bits(single(std::vector<T>(all.y.begin(), all.y.begin() + static_cast<std::ptrdiff_t>(count)))));
        CHECK(bits(single(some.dx)) == bits(single(std::vector<T>(all.dx.begin(), all.dx.begin() + static_cast<std::ptrdiff_t>(count)))));
        for (std::int64_t h = 0; h < s.normed(); ++h) {
            for (std::int64_t r = 0; r < 3; ++r) {
                CHECK(some.rstd[size(h * 3 + r)] == all.rstd[size(h * s.rows + r)]);
            }
        }
    }
}

TEST_CASE("cuda qk norm: in place is rejected; no rows, no work")
{
    float x[8] = {};
    CHECK_THROWS_WITH(cuda::qk_norm_forward<fp32>(
                          {}, {.rows = 1, .heads = 1, .kv_heads = 1, .head_width = 2, .input = x, .query_gamma = x, .key_gamma = x, .output = x, .rstd = x}),
                      Catch::Matchers::ContainsSubstring("does not write over what its backward reads"));
    CHECK_NOTHROW(cuda::qk_norm_forward<fp32>(
        {}, {.rows = 0, .heads = 1, .kv_heads = 1, .head_width = 2, .input = x, .query_gamma = x, .key_gamma = x, .output = nullptr, .rstd = x}));
}
