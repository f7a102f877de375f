// SPDX-License-Identifier: Apache-2.0
#include "kernels/swiglu/swiglu.hpp"

#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

struct shape {
    std::int64_t rows;
    std::int64_t width;
};

template <class T>
struct outputs {
    std::vector<T> y, dx;
    friend bool operator==(outputs const& a, outputs const& b) { return all_bits(a.y, a.dx) == all_bits(b.y, b.dx); }
};

template <dtype_policy Policy, class T>
outputs<storage_t<Policy>> defined(shape s, std::vector<T> const& x, std::vector<T> const& dy)
{
    auto const a = as<storage_t<Policy>>(x), b = as<storage_t<Policy>>(dy);
    outputs<storage_t<Policy>> out{b, a};
    definition::swiglu_forward<Policy>({.rows = s.rows, .width = s.width, .input = a.data(), .output = out.y.data()});
    definition::swiglu_backward<Policy>({.rows = s.rows, .width = s.width, .input = a.data(), .output_gradient = b.data(), .input_gradient = out.dx.data()});
    return out;
}

template <class T>
outputs<T> computed(shape s, std::vector<T> const& values, std::vector<T> const& gradient, std::size_t offset = 0)
{
    device::array<T> const x{values, offset}, dy{gradient}, y{s.rows * s.width}, dx{2 * s.rows * s.width, offset};
    cuda::swiglu_forward<policy<T>>(device::queue(), {.rows = s.rows, .width = s.width, .input = x.data(), .output = y.data()});
    cuda::swiglu_backward<policy<T>>(device::queue(),
                                     {.rows = s.rows, .width = s.width, .input = x.data(), .output_gradient = dy.data(), .input_gradient = dx.data()});
    for (auto const* a : {&x, &dy, &y, &dx}) {
        CHECK(a->margins_kept());
    }
    return {y.host(), dx.host()};
}

}  // namespace

TEMPLATE_TEST_CASE("cuda swiglu: matches double as closely as the definition", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : {shape{1, 1}, shape{3, 7}, shape{5, 33}, shape{3, 1000}, shape{9, 64}, shape{1, 10000}}) {
        INFO(s.rows << " x " << s.width);
        auto values = normal(2 * s.rows * s.width, 1, 3.0F);
        floats const corners{0.0F, 90.0F, -90.0F, -200.0F, 200.0F, -0.0F};
        for (std::size_t i = 0; i < values.size() && i < corners.size(); ++i) {
            values[i] = corners[i];
        }
        auto const x = stored<T>(values);
        auto const dy = stored<T>(normal(s.rows * s.width, 2));
        auto const d = same_in_every_order([&] { return computed(s, x, dy); });
        CHECK(computed(s, x, dy, 1) == d);
        auto const r = defined<fp64>(s, x, dy);
        auto const own = defined<policy<T>>(s, x, dy);
        doubles y_bound(r.y.size()), dx_bound(r.dx.size());
        for (std::int64_t i = 0; i < s.rows * s.width; ++i) {
            std::int64_t const gate_at = i / s.width * 2 * s.width + i % s.width;
            double const g = double(float(x[size(gate_at)]));
            double const value = std::fabs(double(float(x[size(gate_at + s.width)])));
            double const dy_size = std::fabs(double(float(dy[size(i)])));
            // The exponential has 2 roundings, s = 1 / (1 + e^-g) two more, and the products with g and the value two; what is beyond the range of
            // float is zero where the double is below 1e-38 times the rest.
            double const least = 1e-36 * (1 + value) * (1 + std::fabs(g)) * (1 + dy_size);
            y_bound[size(i)] = (8 * u + roundoff<T>)*std::fabs(r.y[size(i)]) + least;
            dx_bound[size(gate_at + s.width)] = (8 * u + roundoff<T>)*std::fabs(r.dx[size(gate_at + s.width)]) + least;
            double const sigmoid = 1 / (1 + std::exp(-g));
            dx_bound[size(gate_at)] =
                12 * u * dy_size * value * (sigmoid + std::fabs(g) * sigmoid * (1 - sigmoid)) + roundoff<T> * std::fabs(r.dx[size(gate_at)]) + least;
        }
        check_within(single(d.y), r.y, y_bound);
        check_within(single(d.dx), r.dx, dx_bound);
        check_no_worse(d.y, own.y, r.y);
        check_no_worse(d.dx, own.dx, r.dx);
    }
}
