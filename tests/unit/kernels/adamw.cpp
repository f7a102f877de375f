// SPDX-License-Identifier: Apache-2.0
#include "kernels/adamw/adamw.hpp"

#include <tuple>

#include "support.hpp"

using namespace rheo;
using namespace support;

static_assert(clip_factor(2.0, 1.0) == 0.5 && clip_factor(0.5, 1.0) == 1.0 && clip_factor(9.0, 0.0) == 1.0);
static_assert(definition::integer_power(2.0, 10) == 1024.0 && definition::integer_power(0.5, 0) == 1.0);

TEST_CASE("adamw: first step is the learning rate, signed")
{
    // m / (1 - beta1) = g and v / (1 - beta2) = g^2, so the change is lr * sign(g) but for epsilon
    doubles master{1.0, -2.0, 3.0};
    doubles m(3);
    doubles v(3);
    doubles const g{0.5, -0.25, 7.0};
    definition::adamw<fp64>({.count = 3,
                             .master = master.data(),
                             .first_moment = m.data(),
                             .second_moment = v.data(),
                             .gradient = g.data(),
                             .settings = {.learning_rate = 0.1, .step = 1}});
    CHECK(master[0] == Approx(0.9));
    CHECK(master[1] == Approx(-1.9));
    CHECK(master[2] == Approx(2.9));
    // decay is decoupled: it does not pass through the moments
    doubles decayed{1.0};
    doubles const zero{0.0};
    m = {0.0};
    v = {0.0};
    definition::adamw<fp64>({.count = 1,
                             .master = decayed.data(),
                             .first_moment = m.data(),
                             .second_moment = v.data(),
                             .gradient = zero.data(),
                             .weight_decay = 0.5,
                             .settings = {.learning_rate = 0.1, .step = 1}});
    CHECK(decayed[0] == Approx(0.95));
    CHECK(m[0] == 0.0);
}

TEST_CASE("adamw: host matches double over many steps")
{
    for (std::int64_t const n : {1, 31, 40'000}) {
        tile_pool pool{2};
        auto master = normal(n, 1);
        floats m(size(n));
        floats v(size(n));
        auto copy = poison(n);
        auto master_wide = wide(master);
        doubles m_wide(size(n));
        doubles v_wide(size(n));
        for (std::int64_t step = 1; step <= 10; ++step) {
            auto const g = normal(n, static_cast<unsigned>(step) + 10);
            auto const g_wide = wide(g);
            host::adamw(pool, {.count = n,
                               .master = master.data(),
                               .first_moment = m.data(),
                               .second_moment = v.data(),
                               .gradient = g.data(),
                               .parameter = copy.data(),
                               .weight_decay = 0.1,
                               .settings = {.gradient_multiplier = 0.01, .learning_rate = 1e-2, .step = step}});
            definition::adamw<fp64>({.count = n,
                                     .master = master_wide.data(),
                                     .first_moment = m_wide.data(),
                                     .second_moment = v_wide.data(),
                                     .gradient = g_wide.data(),
                                     .weight_decay = 0.1,
                                     .settings = {.gradient_multiplier = 0.01, .learning_rate = 1e-2, .step = step}});
        }
        CHECK(bits(copy) == bits(master));
        // Ten roundings of the parameter, and ten changes of at most 0.03 (|m| / sqrt(v) <= 3, times lr) with some 30 roundings each,
        // absolute where m cancels: 10 u |p| + 9 u, doubled.
        doubles bound(size(n));
        for (std::size_t i = 0; i < bound.size(); ++i) {
            bound[i] = 20 * u * (std::fabs(master_wide[i]) + 1);
        }
        check_within(master, master_wide, bound);
    }
}

TEST_CASE("adamw: threads change no bit; step zero is refused")
{
    std::int64_t const n = 50'000;
    auto const g = normal(n, 1);
    check_threads_change_no_bit([&](tile_pool& pool) {
        auto master = normal(n, 2);
        floats m(size(n));
        floats v(size(n));
        for (std::int64_t step = 1; step <= 3; ++step) {
            host::adamw(pool, {.count = n,
                               .master = master.data(),
                               .first_moment = m.data(),
                               .second_moment = v.data(),
                               .gradient = g.data(),
                               .settings = {.learning_rate = 1e-3, .step = step}});
        }
        return std::tuple{bits(master), bits(m), bits(v), std::bit_cast<std::uint64_t>(host::sum_of_squares(pool, {.count = n, .gradient = g.data()}))};
    });
    tile_pool pool{1};
    CHECK_THROWS_AS(host::adamw(pool, {.count = 0,
                                       .master = nullptr,
                                       .first_moment = nullptr,
                                       .second_moment = nullptr,
                                       .gradient = nullptr,
                                       .settings = {.learning_rate = 1, .step = 0}}),
                    precondition_error);
}

TEST_CASE("sum of squares: host agrees with the definition")
{
    tile_pool pool{2};
    for (std::int64_t const n : {0, 1, 17, 4096, 4097, 100'000}) {
        auto const g = normal(n, 3);
        double const expected = definition::sum_of_squares({.count = n, .gradient = g.data()});
        // doubles of one sign: each order of summation is within n * 2^-53 of the exact sum
        CHECK(std::fabs(host::sum_of_squares(pool, {.count = n, .gradient = g.data()}) - expected) <= static_cast<double>(n) * 0x1p-52 * expected);
    }
}
