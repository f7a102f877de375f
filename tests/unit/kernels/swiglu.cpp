// SPDX-License-Identifier: Apache-2.0
#include "kernels/swiglu/swiglu.hpp"

#include "support.hpp"

using namespace rheo;
using namespace support;

TEST_CASE("swiglu: gradient is the derivative")
{
    auto x = wide(normal(3 * 2 * 7, 1, 2.0F));
    auto const dy = wide(normal(3 * 7, 2));
    doubles y(dy.size());
    doubles dx(x.size());
    definition::swiglu_backward<fp64>({.rows = 3, .width = 7, .input = x.data(), .output_gradient = dy.data(), .input_gradient = dx.data()});
    check_derivative(x, dx, [&] {
        definition::swiglu_forward<fp64>({.rows = 3, .width = 7, .input = x.data(), .output = y.data()});
        return dot(y, dy);
    });
}

TEST_CASE("swiglu: host matches double over the whole range")
{
    floats gates;
    for (float g = -30.0F; g < 30.0F; g += 0.0071F) {
        gates.push_back(g);
    }
    for (float const g : {0.0F, -0.0F, 1e-30F, -1e-30F, 100.0F, -100.0F, 1e6F, -1e6F}) {
        gates.push_back(g);
    }
    std::int64_t const width = std::ssize(gates);
    auto x = gates;
    auto const values = normal(width, 3);
    x.insert(x.end(), values.begin(), values.end());
    auto const dy = normal(width, 4);
    auto const xd = wide(x);
    auto const dyd = wide(dy);
    doubles expected(size(width));
    definition::swiglu_forward<fp64>({.rows = 1, .width = width, .input = xd.data(), .output = expected.data()});
    // y = g s u: the exponential is off by 3e-7, which changes s by at most that; three roundings more; and where the exponential ends
    // (g below -87.3) s vanishes, where it is below 1e-37
    doubles bound(expected.size());
    for (std::size_t i = 0; i < bound.size(); ++i) {
        bound[i] = 6e-7 * std::fabs(expected[i]) + 1e-30;
    }
    tile_pool pool{2};
    auto y = poison(width);
    host::swiglu_forward(pool, {.rows = 1, .width = width, .input = x.data(), .output = y.data()});
    check_within(y, expected, bound);
    // du = dy g s as above; dg = dy u (s + g s (1 - s)) with |g s (1 - s)| < 0.3 and |s| <= 1, each relatively as above
    doubles gradient(x.size());
    definition::swiglu_backward<fp64>({.rows = 1, .width = width, .input = xd.data(), .output_gradient = dyd.data(), .input_gradient = gradient.data()});
    bound.assign(x.size(), 0);
    for (std::size_t i = 0; i < size(width); ++i) {
        bound[i] = 1.5e-6 * std::fabs(dyd[i] * xd[size(width) + i]) + 1e-30;
        bound[size(width) + i] = 8e-7 * std::fabs(gradient[size(width) + i]) + 1e-30;
    }
    auto dx = poison(2 * width);
    host::swiglu_backward(pool, {.rows = 1, .width = width, .input = x.data(), .output_gradient = dy.data(), .input_gradient = dx.data()});
    check_within(dx, gradient, bound);
}

TEST_CASE("swiglu: threads change no bit")
{
    for (std::int64_t const width : {1, 17, 300}) {
        auto const x = normal(40 * 2 * width, 1);
        auto const dy = normal(40 * width, 2);
        check_threads_change_no_bit([&](tile_pool& pool) {
            auto y = poison(40 * width);
            auto dx = poison(40 * 2 * width);
            host::swiglu_forward(pool, {.rows = 40, .width = width, .input = x.data(), .output = y.data()});
            host::swiglu_backward(pool, {.rows = 40, .width = width, .input = x.data(), .output_gradient = dy.data(), .input_gradient = dx.data()});
            return std::pair{bits(y), bits(dx)};
        });
    }
}
