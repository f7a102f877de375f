// SPDX-License-Identifier: Apache-2.0
#include "kernels/gelu/gelu.hpp"

#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

/// Values that matter for the exponential, and random ones.
template <class T>
std::vector<T> inputs(std::int64_t count)
{
    auto values = normal(count, 1, 3.0F);
    floats const corners{0.0F, -0.0F, 1e-30F, -1e-30F, -5.0F, 5.0F, -12.0F, 12.0F, -100.0F, 100.0F, 1e10F, -1e10F};
    for (std::size_t i = 0; i < values.size() && i < corners.size(); ++i) {
        values[i] = corners[i];
    }
    return stored<T>(values);
}

template <class T>
struct outputs {
    std::vector<T> y, dx;
    friend bool operator==(outputs const& a, outputs const& b) { return all_bits(a.y, a.dx) == all_bits(b.y, b.dx); }
};

template <dtype_policy Policy, class T>
outputs<storage_t<Policy>> defined(std::vector<T> const& x, std::vector<T> const& dy)
{
    auto const a = as<storage_t<Policy>>(x), b = as<storage_t<Policy>>(dy);
    outputs<storage_t<Policy>> out{a, a};
    definition::gelu_forward<Policy>({.count = std::ssize(x), .input = a.data(), .output = out.y.data()});
    definition::gelu_backward<Policy>({.count = std::ssize(x), .input = a.data(), .output_gradient = b.data(), .input_gradient = out.dx.data()});
    return out;
}

template <class T>
outputs<T> computed(std::vector<T> const& values, std::vector<T> const& gradient, std::size_t offset = 0)
{
    auto const count = std::ssize(values);
    device::array<T> const x{values, offset}, dy{gradient}, y{count}, dx{count}, in_place{values}, dy_in_place{gradient};
    cuda::gelu_forward<policy<T>>(device::queue(), {.count = count, .input = x.data(), .output = y.data()});
    cuda::gelu_forward<policy<T>>(device::queue(), {.count = count, .input = in_place.data(), .output = in_place.data()});
    cuda::gelu_backward<policy<T>>(device::queue(), {.count = count, .input = x.data(), .output_gradient = dy.data(), .input_gradient = dx.data()});
    cuda::gelu_backward<policy<T>>(device::queue(),
                                   {.count = count, .input = x.data(), .output_gradient = dy_in_place.data(), .input_gradient = dy_in_place.data()});
    for (auto const* a : {&x, &dy, &y, &dx, &in_place, &dy_in_place}) {
        CHECK(a->margins_kept());
    }
    CHECK(all_bits(in_place.host(), dy_in_place.host()) == all_bits(y.host(), dx.host()));
    return {y.host(), dx.host()};
}

}  // namespace

TEMPLATE_TEST_CASE("cuda gelu: matches double as closely as the definition", "", float, bfloat16)
{
    using T = TestType;
    for (std::int64_t const count : {1, 7, 33, 1000, 9000}) {
        INFO(count);
        auto const x = inputs<T>(count);
        auto const dy = stored<T>(normal(count, 2));
        auto const d = same_in_every_order([&] { return computed(x, dy); });
        CHECK(computed(x, dy, 1) == d);
        auto const r = defined<fp64>(x, dy);
        auto const own = defined<policy<T>>(x, dy);
        doubles y_bound(r.y.size()), dx_bound(r.y.size());
        for (std::size_t i = 0; i < r.y.size(); ++i) {
            double const v = std::fabs(double(float(x[i])));
            double const cubic = 1.6 * (v + 0.044715 * v * v * v);
            // The argument v of the exponential has 6 roundings and the exponential 2, and with s = 1 / (1 + e^-v) its relative error 6 u v + 2 u moves x s by
            // (1 - s) of that; 3 more roundings. Beyond |v| = 88 the exponential is 0 or infinite and s is right to 1e-38. The definition
            // itself loses all of 1 + tanh below 2^-53.
            double const relative = 8 * u * std::min(cubic, 90.0) + 6 * u;
            y_bound[i] = (relative + roundoff<T>)*std::fabs(r.y[i]) + 0x1p-52 * v + 1e-36;
            // the derivative s + x v' s (1 - s): both terms move by `relative`, and x v' is at most 3 cubic + 1
            double const steep = std::exp(-std::min(cubic, 700.0));
            dx_bound[i] =
                std::fabs(double(float(dy[i]))) * (relative * (1 + 3 * cubic) * (float(x[i]) > 0 ? 1 : 0) + 2 * relative * (1 + 3 * cubic) * steep + 4 * u) +
                roundoff<T> * std::fabs(r.dx[i]) + 0x1p-51 * (1 + 3 * cubic) * std::fabs(double(float(dy[i]))) + 1e-36;
        }
        check_within(single(d.y), r.y, y_bound);
        check_within(single(d.dx), r.dx, dx_bound);
        check_no_worse(d.y, own.y, r.y);
        check_no_worse(d.dx, own.dx, r.dx);
    }
}

// What is left when both instructions are as wrong as their description allows; with exact ones it is 2.7, 32 and 3.5.
TEST_CASE("cuda gelu: float is within units of double's last place")
{
    floats x;
    for (float v = -5.0F; v < 12.0F; v += 0.00037F) {
        x.push_back(v);
    }
    floats const dy(x.size(), 1.0F);
    auto const d = computed(x, dy);
    auto const r = defined<fp64>(x, dy);
    double near = 0, far = 0, slope = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        auto const exact = static_cast<float>(std::fabs(r.y[i]));
        double const unit = double(std::nextafter(exact, INFINITY)) - double(exact);
        double const error = std::fabs(double(d.y[i]) - r.y[i]) / unit;
        (x[i] < -1 ? far : near) = std::max(x[i] < -1 ? far : near, error);
        slope = std::max(slope, std::fabs(double(d.dx[i]) - r.dx[i]) / u);
    }
    CHECK(near <= 7);  // from -1 on
    CHECK(far <= 40);  // below, the exponent's roundings count as often as it is large: 20 times at -5
    CHECK(slope <= 6);
}
