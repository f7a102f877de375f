// SPDX-License-Identifier: Apache-2.0
// Sums in 32 bits: the properties of those in 64, by trying every order and split of small rows, and the bound by every number of
// contributions.
#include "rheo/tensor/exact_row_sum.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "rheo/model/parameter_bytes.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

static_assert(sizeof(row_sum_state) == scale_bytes_per_row);
static_assert(row_bound_log2(1) == 30 && row_bound_log2(2) == 29 && row_bound_log2(3) == 28 && row_bound_log2(1024) == 20 && row_bound_log2(1025) == 19);

// No sum can overflow: contributions * bound <= 2^30, and twice the bound would be too much.
constexpr bool no_sum_overflows()
{
    for (int c = 1; c <= most_row_contributions; c += c < 5'000 ? 1 : c / 3) {
        auto const bound = std::int64_t{1} << row_bound_log2(c);
        if (c * bound > std::int64_t{1} << 30 || 2 * c * bound <= std::int64_t{1} << 30) {
            return false;
        }
    }
    return true;
}
static_assert(no_sum_overflows());

// The next scale is the largest k with max * 2^k < 2^(bound - 8).
constexpr bool is_next(float max_abs, int contributions)
{
    int const k = next_row_scale(max_abs, contributions, 0);
    double const limit = detail::power_of_two(row_bound_log2(contributions) - 8);
    return static_cast<double>(max_abs) * detail::power_of_two(k) < limit && static_cast<double>(max_abs) * detail::power_of_two(k + 1) >= limit;
}
static_assert(is_next(1.0F, 1) && is_next(0.999F, 8) && is_next(3e-30F, 100) && is_next(3e38F, 4000) && is_next(1.5F, 1 << 20));
static_assert(next_row_scale(0.0F, 8, 17) == 17 && next_row_scale(1e-45F, 1, 0) == largest_row_scale_log2);
static_assert(value_of(std::int32_t{3}, 1) == 1.5F);

/// A row of three elements in the making.
struct row {
    std::array<std::int32_t, 3> sums{};
    row_sum_state state{};

    friend constexpr bool operator==(row const&, row const&) = default;
};

/// What a microbatch contributes to the row.
using contribution = std::array<float, 3>;

constexpr row sum_of(std::vector<contribution> const& all, int scale, int contributions)
{
    row result{.state = {.scale_log2 = scale}};
    for (auto const& one : all) {
        for (std::size_t i = 0; i < one.size(); ++i) {
            add_contribution(result.sums[i], result.state, one[i], contributions);
        }
    }
    return result;
}
static_assert(sum_of({{1.0F, -0.5F, 0.25F}, {2.0F, 0.5F, 0.0F}}, 4, 2) == row{{48, 0, 4}, {4, 2.0F}});

constexpr row added(row const& a, row const& b)
{
    row result{.state = joined(a.state, b.state)};
    for (std::size_t i = 0; i < a.sums.size(); ++i) {
        result.sums[i] = a.sums[i] + b.sums[i];
    }
    return result;
}

std::vector<contribution> some_contributions(int count, unsigned seed, float largest_exponent)
{
    std::mt19937 random{seed};
    std::uniform_real_distribution<float> exponent{-20.0F, largest_exponent};
    std::uniform_real_distribution<float> mantissa{-1.0F, 1.0F};
    std::vector<contribution> all(static_cast<std::size_t>(count));
    for (auto& one : all) {
        for (auto& v : one) {
            v = std::ldexp(mantissa(random), static_cast<int>(exponent(random)));
        }
    }
    return all;
}

}  // namespace

TEST_CASE("exact_row_sum: independent of order and grouping")
{
    bool flagged = false;
    bool clean = false;
    for (unsigned seed = 0; seed < 20; ++seed) {
        auto all = some_contributions(5, seed, 12.0F);
        if (seed % 5 == 0) {
            all[1][2] = std::numeric_limits<float>::quiet_NaN();
            all[4][0] = -std::numeric_limits<float>::infinity();
        }
        auto const whole = sum_of(all, 19, 5);  // bound 2^27: overflow from 2^8 on
        CHECK(not_finite(whole.state) == (seed % 5 == 0));
        flagged = flagged || overflowed(whole.state, 5);
        clean = clean || !(overflowed(whole.state, 5) || not_finite(whole.state));
        std::array<std::size_t, 5> order{0, 1, 2, 3, 4};
        do {
            std::vector<contribution> turned;
            for (auto const i : order) {
                turned.push_back(all[i]);
            }
            CHECK(sum_of(turned, 19, 5) == whole);
        } while (std::next_permutation(order.begin(), order.end()));
        for (unsigned marks = 0; marks < 32; ++marks) {
            std::vector<contribution> here, there;
            for (std::size_t i = 0; i < 5; ++i) {
                ((marks >> i & 1U) != 0 ? here : there).push_back(all[i]);
            }
            CHECK(added(sum_of(here, 19, 5), sum_of(there, 19, 5)) == whole);
        }
    }
    CHECK(flagged);
    CHECK(clean);
}

TEST_CASE("exact_row_sum: nearest even, bounded exactly")
{
    for (int const contributions : {1, 2, 3, 100, 4096}) {
        auto const bound = static_cast<float>(1 << row_bound_log2(contributions));
        auto const below = std::nextafter(bound, 0.0F);
        for (float const v : {below, -below, 2.5F, 3.5F, -2.5F, -0.3F, 0.0F, 1e-45F}) {
            auto const s = sum_of({{v, 0, 0}}, 0, contributions);
            CHECK(s.sums[0] == std::llrint(static_cast<double>(v)));
            CHECK_FALSE(overflowed(s.state, contributions));
        }
        for (float const v : {bound, -bound, 3e38F}) {
            auto const s = sum_of({{v, 1.0F, 0}}, 0, contributions);
            CHECK(s.sums == std::array<std::int32_t, 3>{0, 1, 0});
            CHECK(overflowed(s.state, contributions));
            CHECK(s.state.max_abs == std::fabs(v));
            CHECK_FALSE(overflowed(sum_of({{bound, 0, 0}}, -1, contributions).state, contributions));
        }
        // the largest sums there can be
        auto const most = sum_of(std::vector<contribution>(static_cast<std::size_t>(contributions), {below, -below, below}), 0, contributions);
        CHECK(most.sums[0] == static_cast<std::int64_t>(std::llrint(static_cast<double>(below))) * contributions);
        CHECK(most.sums[1] == -most.sums[0]);
        CHECK_FALSE(overflowed(most.state, contributions));
    }
}

TEST_CASE("exact_row_sum: a redone row fits after overflow")
{
    int flagged = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
        int const contributions = 1 + static_cast<int>(seed) * 7;
        auto const all = some_contributions(contributions, seed, 100.0F);
        auto const first = sum_of(all, 40, contributions);
        flagged += overflowed(first.state, contributions) ? 1 : 0;
        int const next = next_row_scale(first.state.max_abs, contributions, 40);
        auto const redone = sum_of(all, next, contributions);
        CHECK_FALSE(overflowed(redone.state, contributions));
        CHECK(redone.state.max_abs == first.state.max_abs);
        CHECK(redone.state.max_abs * 128.0F < row_overflow_threshold(next, contributions));  // and so much more fits in the next step
    }
    CHECK(flagged > 100);
}

TEST_CASE("exact_row_sum: equals the int64 sum at its scale")
{
    for (unsigned seed = 0; seed < 50; ++seed) {
        auto const all = some_contributions(16, seed, 0.0F);
        int const scale = next_row_scale(1.0F, 16, 0);
        auto const narrow = sum_of(all, scale, 16);
        REQUIRE_FALSE(overflowed(narrow.state, 16));
        for (std::size_t i = 0; i < 3; ++i) {
            std::int64_t wide = 0;
            accumulator_state state{.scale_log2 = scale};
            for (auto const& one : all) {
                add_contribution(wide, state, one[i], 16);
            }
            CHECK(narrow.sums[i] == wide);
            CHECK(value_of(narrow.sums[i], scale) == value_of(wide, scale));
        }
    }
}

TEST_CASE("exact_row_sum: rows are refused where the law does not hold")
{
    CHECK_THROWS_AS(row_bound_log2(0), precondition_error);
    CHECK_THROWS_AS(row_bound_log2(most_row_contributions + 1), precondition_error);
    CHECK_THROWS_AS(row_overflow_threshold(largest_row_scale_log2 + 1, 8), precondition_error);
    CHECK_THROWS_AS(joined(row_sum_state{1, 0}, row_sum_state{2, 0}), precondition_error);
    CHECK_THROWS_AS(next_row_scale(std::numeric_limits<float>::infinity(), 8, 3), precondition_error);
    CHECK_NOTHROW(row_overflow_threshold(largest_row_scale_log2, 1));
    CHECK_NOTHROW(row_overflow_threshold(least_row_scale_log2, most_row_contributions));
}
