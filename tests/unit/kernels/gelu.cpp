// SPDX-License-Identifier: Apache-2.0
#include "kernels/gelu/gelu.hpp"

#include "support.hpp"

using namespace rheo;
using namespace support;

TEST_CASE("gelu: gradient is the derivative")
{
    auto x = wide(normal(50, 1, 2.0F));
    auto const dy = wide(normal(50, 2));
    doubles y(x.size());
    doubles dx(x.size());
    definition::gelu_backward<fp64>({.count = 50, .input = x.data(), .output_gradient = dy.data(), .input_gradient = dx.data()});
    check_derivative(x, dx, [&] {
        definition::gelu_forward<fp64>({.count = 50, .input = x.data(), .output = y.data()});
        return dot(y, dy);
    });
}

TEST_CASE("gelu: host matches double over the whole range")
{
    floats x;
    for (float v = -30.0F; v < 30.0F; v += 0.00071F) {
        x.push_back(v);
    }
    for (float const v : {0.0F, -0.0F, 1e-30F, -1e-30F, 1e-6F, 100.0F, -100.0F, 1e6F, -1e6F}) {
        x.push_back(v);
    }
    std::int64_t const n = std::ssize(x);
    auto const xd = wide(x);
    doubles expected(x.size());
    definition::gelu_forward<fp64>({.count = n, .input = xd.data(), .output = expected.data()});
    // gelu = x s, s = 1 / (1 + e^-U). U is off by at most 4 u |U|, which changes s by s (1 - s) 4 u |U| <= 0.28 * 4 u; the
    // exponential is off by 3e-7, which changes s by at most a quarter of it; two roundings more: 0.7e-7 + 0.75e-7 + 1.2e-7 < 3e-7 of |x|
    doubles bound(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        bound[i] = 3e-7 * std::fabs(xd[i]);
    }
    tile_pool pool{2};
    auto y = poison(n);
    host::gelu_forward(pool, {.count = n, .input = x.data(), .output = y.data()});
    check_within(y, expected, bound);

    // The derivative is s + x U' s (1 - s): with |x U' s (1 - s)| < 0.6 and its sensitivity to U below 2, and relative errors as above
    auto const dy = normal(n, 3);
    auto const dyd = wide(dy);
    definition::gelu_backward<fp64>({.count = n, .input = xd.data(), .output_gradient = dyd.data(), .input_gradient = expected.data()});
    for (std::size_t i = 0; i < x.size(); ++i) {
        bound[i] = 1.5e-6 * std::fabs(dyd[i]);
    }
    auto dx = poison(n);
    host::gelu_backward(pool, {.count = n, .input = x.data(), .output_gradient = dy.data(), .input_gradient = dx.data()});
    check_within(dx, expected, bound);
    auto in_place = dy;
    host::gelu_backward(pool, {.count = n, .input = x.data(), .output_gradient = in_place.data(), .input_gradient = in_place.data()});
    CHECK(bits(in_place) == bits(dx));
}

TEST_CASE("gelu: threads change no bit")
{
    for (std::int64_t const n : {1, 17, 40'000}) {
        auto const x = normal(n, 1);
        auto const dy = normal(n, 2);
        check_threads_change_no_bit([&](tile_pool& pool) {
            auto y = poison(n);
            auto dx = poison(n);
            host::gelu_forward(pool, {.count = n, .input = x.data(), .output = y.data()});
            host::gelu_backward(pool, {.count = n, .input = x.data(), .output_gradient = dy.data(), .input_gradient = dx.data()});
            return std::pair{bits(y), bits(dx)};
        });
    }
}
