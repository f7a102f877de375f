// SPDX-License-Identifier: Apache-2.0
#include "kernels/initialise/initialise.hpp"

#include "support.hpp"

using namespace rheo;
using namespace support;

TEST_CASE("initial values: host agrees with the definition")
{
    tile_pool pool{2};
    std::int64_t const n = 200'000;
    auto values = poison(n);
    host::initialise_normal(pool, {.seed = 3, .tensor = tensor_id{7}, .count = n, .mean = 0.5, .deviation = 2.0, .values = values.data()});
    doubles expected(size(n));
    definition::initialise_normal<fp64>({.seed = 3, .tensor = tensor_id{7}, .count = n, .mean = 0.5, .deviation = 2.0, .values = expected.data()});
    // double throughout, one rounding to float; near u = 1 the logarithm's absolute error 4e-16 stands under a root: 2e-8
    doubles bound(size(n));
    for (std::size_t i = 0; i < bound.size(); ++i) {
        bound[i] = u * std::fabs(expected[i]) + 1e-9;
    }
    check_within(values, expected, bound);
    double sum = 0;
    double squares = 0;
    double fourth = 0;
    for (double const v : expected) {
        double const z = (v - 0.5) / 2.0;
        sum += z;
        squares += z * z;
        fourth += z * z * z * z;
    }
    // deviations of the three means over n normal values: 1, sqrt(2) and sqrt(96) over sqrt(n); five of each
    double const root = std::sqrt(static_cast<double>(n));
    CHECK(std::fabs(sum / static_cast<double>(n)) < 5 / root);
    CHECK(std::fabs(squares / static_cast<double>(n) - 1) < 5 * std::sqrt(2.0) / root);
    CHECK(std::fabs(fourth / static_cast<double>(n) - 3) < 5 * std::sqrt(96.0) / root);
}

TEST_CASE("initialise: any range has the bits of the whole")
{
    std::int64_t const n = 50'000;
    tile_pool pool{3};
    auto whole = poison(n);
    host::initialise_normal(pool, {.seed = 3, .tensor = tensor_id{7}, .count = n, .deviation = 0.02, .values = whole.data()});
    for (auto const& [first, count] : {std::pair<std::int64_t, std::int64_t>{0, 1}, {1, 1}, {31, 2}, {17, 40'000}, {49'999, 1}, {640, 64}}) {
        auto part = poison(count);
        host::initialise_normal(pool, {.seed = 3, .tensor = tensor_id{7}, .first = first, .count = count, .deviation = 0.02, .values = part.data()});
        CHECK(bits(part) == bits({whole.begin() + first, whole.begin() + first + count}));
    }
    auto other = poison(n);
    host::initialise_normal(pool, {.seed = 3, .tensor = tensor_id{8}, .count = n, .deviation = 0.02, .values = other.data()});
    CHECK(bits(other) != bits(whole));
}

TEST_CASE("initialise: threads change no bit; constants are constant")
{
    check_threads_change_no_bit([&](tile_pool& pool) {
        auto values = poison(70'000);
        host::initialise_normal(pool, {.seed = 1, .tensor = tensor_id{2}, .count = 70'000, .deviation = 1.0, .values = values.data()});
        return bits(values);
    });
    tile_pool pool{2};
    auto values = poison(70'000);
    host::initialise_constant(pool, {.count = 70'000, .value = 1.5, .values = values.data()});
    CHECK(values == floats(70'000, 1.5F));
}
