// SPDX-License-Identifier: Apache-2.0
#include "kernels/exact/exact.hpp"

#include "support.hpp"

using namespace rheo;
using namespace support;

TEST_CASE("exact: host accumulation matches the definition")
{
    for (std::int64_t const n : {1, 15, 1000, 20'000}) {
        for (int const trouble : {0, 1, 2, 3}) {
            auto g = normal(n, 1, 100.0F);
            if ((trouble & 1) != 0) {
                g[size(n / 2)] = -3e20F;
            }
            if ((trouble & 2) != 0) {
                g[size(n - 1)] = std::numeric_limits<float>::infinity();
            }
            exact_buffer expected{n, 35};
            definition::exact_accumulate({.count = n, .gradient = g.data(), .target = expected.target()});
            definition::exact_accumulate({.count = n, .gradient = g.data(), .target = expected.target()});
            check_threads_change_no_bit([&](tile_pool& pool) {
                exact_buffer sums{n, 35};
                host::exact_accumulate(pool, {.count = n, .gradient = g.data(), .target = sums.target()});
                host::exact_accumulate(pool, {.count = n, .gradient = g.data(), .target = sums.target()});
                CHECK(sums == expected);
                return sums;
            });
            CHECK(expected.state.overflow == ((trouble & 1) != 0 && !((trouble & 2) != 0 && n == 1)));
            CHECK(expected.state.not_finite == ((trouble & 2) != 0));
        }
    }
}

TEST_CASE("exact: add, convert and zero match the definition")
{
    for (std::int64_t const n : {1, 33, 40'000}) {
        exact_buffer a{n, 44};
        exact_buffer b{n, 44};
        auto const first = normal(n, 1);
        auto const second = normal(n, 2);
        definition::exact_accumulate({.count = n, .gradient = first.data(), .target = a.target()});
        definition::exact_accumulate({.count = n, .gradient = second.data(), .target = b.target()});
        auto expected = a.sums;
        definition::exact_add({.count = n, .source = b.sums.data(), .target = expected.data()});
        auto expected_values = poison(n);
        definition::exact_convert({.count = n, .sums = expected.data(), .scale_log2 = 44, .gradient = expected_values.data()});
        check_threads_change_no_bit([&](tile_pool& pool) {
            auto sums = a.sums;
            host::exact_add(pool, {.count = n, .source = b.sums.data(), .target = sums.data()});
            CHECK(sums == expected);
            auto values = poison(n);
            host::exact_convert(pool, {.count = n, .sums = sums.data(), .scale_log2 = 44, .gradient = values.data()});
            CHECK(bits(values) == bits(expected_values));
            host::exact_zero(pool, n, sums.data());
            CHECK(sums == std::vector<std::int64_t>(size(n)));
            return bits(values);
        });
    }
}

TEST_CASE("exact: overflow is judged exactly at the bound")
{
    tile_pool pool{2};
    float const at = overflow_threshold(20, 5'000);
    for (float const v : {at, -at, std::nextafter(at, 0.0F), std::nextafter(-at, 0.0F)}) {
        floats g(100, 0.5F);
        g[37] = v;
        exact_buffer sums{100, 20};
        sums.contributions = 5'000;
        auto expected = sums;
        definition::exact_accumulate({.count = 100, .gradient = g.data(), .target = expected.target()});
        host::exact_accumulate(pool, {.count = 100, .gradient = g.data(), .target = sums.target()});
        CHECK(sums == expected);
        CHECK(sums.state.overflow == (std::fabs(v) == at));
    }
}
