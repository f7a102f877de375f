// SPDX-License-Identifier: Apache-2.0
#include "rheo/tensor/exact_sum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "support/catch.hpp"

using namespace rheo;

static_assert(contribution_bound_log2(1) == 51 && contribution_bound_log2(2048) == 51);
static_assert(contribution_bound_log2(2049) == 50 && contribution_bound_log2(1 << 20) == 42);
static_assert(contribution_bound_log2(3) == 51 && contribution_bound_log2((1 << 20) + 1) == 41);

// No sum can overflow: contributions * bound <= 2^62 for every number of contributions.
constexpr bool no_sum_overflows()
{
    for (int c = 1; c < 5'000; ++c) {
        if ((std::int64_t{1} << 62) / c < std::int64_t{1} << contribution_bound_log2(c)) {
            return false;
        }
    }
    for (int c = 1; c < 1 << 30; c += c / 2 + 1) {
        if ((std::int64_t{1} << 62) / c < std::int64_t{1} << contribution_bound_log2(c)) {
            return false;
        }
    }
    return true;
}
static_assert(no_sum_overflows());

// The next scale is the largest k with max * 2^k < 2^(bound - 8).
constexpr bool is_next(float max_abs, int contributions)
{
    int const k = next_scale(max_abs, contributions, 0);
    double const limit = detail::power_of_two(contribution_bound_log2(contributions) - 8);
    return static_cast<double>(max_abs) * detail::power_of_two(k) < limit && static_cast<double>(max_abs) * detail::power_of_two(k + 1) >= limit;
}
static_assert(is_next(1.0F, 1) && is_next(0.999F, 8) && is_next(3e-30F, 100) && is_next(3e38F, 4000) && is_next(1e-45F, 1));
static_assert(next_scale(0.0F, 8, 17) == 17);
static_assert(value_of(3, 1) == 1.5F && value_of(-1, -3) == -8.0F);

// What either half of a sum knows the whole knows: each flag, and the larger maximum.
constexpr bool joined_keeps_everything()
{
    for (unsigned flags = 0; flags < 16; ++flags) {
        accumulator_state const a{.scale_log2 = 7, .max_abs = 2, .overflow = (flags & 1U) != 0, .not_finite = (flags & 2U) != 0};
        accumulator_state const b{.scale_log2 = 7, .max_abs = 3, .overflow = (flags & 4U) != 0, .not_finite = (flags & 8U) != 0};
        accumulator_state const both{.scale_log2 = 7, .max_abs = 3, .overflow = (flags & 5U) != 0, .not_finite = (flags & 10U) != 0};
        if (joined(a, b) != both || joined(b, a) != both) {
            return false;
        }
    }
    return true;
}
static_assert(joined_keeps_everything());

namespace {

struct exact {
    std::int64_t sum = 0;
    accumulator_state state{};

    friend bool operator==(exact const&, exact const&) = default;
};

exact sum_of(std::vector<float> const& values, int scale, int contributions)
{
    exact result{.state = {.scale_log2 = scale}};
    for (float const v : values) {
        add_contribution(result.sum, result.state, v, contributions);
    }
    return result;
}

std::vector<float> some_values(int count, unsigned seed, float largest_exponent)
{
    std::mt19937 random{seed};
    std::uniform_real_distribution<float> exponent{-20.0F, largest_exponent};
    std::uniform_real_distribution<float> mantissa{-1.0F, 1.0F};
    std::vector<float> values(static_cast<std::size_t>(count));
    for (auto& v : values) {
        v = std::ldexp(mantissa(random), static_cast<int>(exponent(random)));
    }
    return values;
}

}  // namespace

TEST_CASE("exact_sum: independent of order and grouping")
{
    std::mt19937 random{1};
    for (int seed = 0; seed < 50; ++seed) {
        // exponents up to 2^12 at scale 2^40: some contributions overflow, and that verdict must not depend on order either
        auto values = some_values(64, static_cast<unsigned>(seed), 12.0F);
        if (seed % 5 == 0) {
            values[3] = std::numeric_limits<float>::quiet_NaN();
            values[40] = -std::numeric_limits<float>::infinity();
        }
        auto const whole = sum_of(values, 40, 64);
        std::shuffle(values.begin(), values.end(), random);
        CHECK(sum_of(values, 40, 64) == whole);
        auto const cut = values.begin() + static_cast<std::ptrdiff_t>(random() % 65);
        auto const a = sum_of({values.begin(), cut}, 40, 64);
        auto const b = sum_of({cut, values.end()}, 40, 64);
        CHECK(exact{a.sum + b.sum, joined(a.state, b.state)} == whole);
        CHECK(whole.state.not_finite == (seed % 5 == 0));
    }
}

TEST_CASE("exact_sum: rounds to nearest, ties to even")
{
    CHECK(sum_of({2.5F}, 0, 1).sum == 2);
    CHECK(sum_of({3.5F}, 0, 1).sum == 4);
    CHECK(sum_of({-2.5F}, 0, 1).sum == -2);
    CHECK(sum_of({-0.3F}, 1, 1).sum == -1);
    CHECK(sum_of({0.75F}, 2, 1).sum == 3);
    for (float const v : some_values(1000, 3, 10.0F)) {
        CHECK(sum_of({v}, 30, 1).sum == std::llrint(std::ldexp(static_cast<double>(v), 30)));
    }
}

TEST_CASE("exact_sum: overflow per contribution, at the bound")
{
    int const contributions = 5'000;  // bound 2^49
    float const at = std::ldexp(1.0F, 49);
    float const below = std::nextafter(at, 0.0F);
    CHECK_FALSE(sum_of({below, below, -below, below}, 0, contributions).state.overflow);
    CHECK(sum_of({at}, 0, contributions).state.overflow);
    CHECK(sum_of({-at}, 0, contributions).state.overflow);
    CHECK(sum_of({at}, 0, contributions).state.max_abs == at);
    CHECK(sum_of({at, 1.0F}, 0, contributions).sum == 1);
    CHECK_FALSE(sum_of({at}, -1, contributions).state.overflow);
    // the largest sum there can be
    exact all{};
    for (int i = 0; i < contributions; ++i) {
        add_contribution(all.sum, all.state, below, contributions);
    }
    CHECK(all.sum == std::int64_t{contributions} * static_cast<std::int64_t>(below));
    CHECK_FALSE(all.state.overflow);
}

TEST_CASE("exact_sum: a redone attempt fits after overflow")
{
    for (unsigned seed = 0; seed < 200; ++seed) {
        int const contributions = 1 + static_cast<int>(seed) * 37;
        auto const values = some_values(contributions, seed, 100.0F);
        auto const first = sum_of(values, 60, contributions);
        int const next = next_scale(first.state.max_abs, contributions, 60);
        auto const redone = sum_of(values, next, contributions);
        CHECK_FALSE(redone.state.overflow);
        CHECK(redone.state.max_abs == first.state.max_abs);
        // and 2^7 times as much still fits in the next step
        CHECK(redone.state.max_abs * 128.0F < overflow_threshold(next, contributions));
    }
}

TEST_CASE("exact_sum: not finite is not overflow")
{
    auto const infinite = sum_of({std::numeric_limits<float>::infinity(), 1.0F}, 10, 4);
    CHECK(infinite.state.not_finite);
    CHECK_FALSE(infinite.state.overflow);
    CHECK(infinite.sum == 1024);
    CHECK(infinite.state.max_abs == 1.0F);
    auto const huge = sum_of({3e38F}, 10, 4);
    CHECK(huge.state.overflow);
    CHECK_FALSE(huge.state.not_finite);
}

TEST_CASE("exact_sum: extremes of float and scale stay defined")
{
    for (float const v : {0.0F, -0.0F, 1e-45F, 1.17549435e-38F, 3.4028235e38F, -3.4028235e38F}) {
        for (int const k : {least_scale_log2, -1, 0, 1, 51, largest_scale_log2}) {
            auto const s = sum_of({v, v}, k, 2);
            CHECK(s.state.max_abs == std::fabs(v));
            if (!s.state.overflow) {
                CHECK(std::llabs(s.sum) <= std::int64_t{1} << 52);
            } else {
                CHECK(s.sum == 0);
            }
        }
    }
    CHECK_THROWS_AS(joined({.scale_log2 = 1}, {.scale_log2 = 2}), precondition_error);
    CHECK_THROWS_AS(contribution_bound_log2(0), precondition_error);
}

TEST_CASE("exact_sum: converts to the nearest float")
{
    for (float const v : some_values(500, 9, 8.0F)) {
        auto const s = sum_of({v}, 42, 1);
        CHECK(value_of(s.sum, 42) == Approx(v).margin(std::ldexp(0.5, -42)).epsilon(1e-7));
    }
}
