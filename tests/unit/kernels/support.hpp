#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the tests of all kernels share: values to work on, the comparison of a host result with the definition in
// double, the derivative of a definition by finite differences, and the law that threads change no bit.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/exact/exact.hpp"
#include "kernels/tiles.hpp"
#include "support/catch.hpp"

namespace support {

using rheo::dtype;
using floats = std::vector<float>;
using doubles = std::vector<double>;
using int32s = std::vector<std::int32_t>;

/// The unit roundoff of float: one rounding changes a value by at most this, relatively.
inline constexpr double u = 0x1p-24;

inline std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

inline floats normal(std::int64_t count, unsigned seed, float deviation = 1.0F, float mean = 0.0F)
{
    std::mt19937 random{seed};
    std::normal_distribution<float> draw{mean, deviation};
    floats values(size(count));
    for (auto& v : values) {
        v = draw(random);
    }
    return values;
}

inline int32s tokens(std::int64_t count, std::int32_t below, unsigned seed)
{
    std::mt19937 random{seed};
    int32s values(size(count));
    for (auto& v : values) {
        v = static_cast<std::int32_t>(random() % static_cast<unsigned>(below));
    }
    return values;
}

inline doubles wide(floats const& values) { return {values.begin(), values.end()}; }

inline doubles magnitudes(doubles values)
{
    for (auto& v : values) {
        v = std::fabs(v);
    }
    return values;
}

/// Memory that has to be overwritten: any element left alone fails every comparison.
inline floats poison(std::int64_t count) { return floats(size(count), std::numeric_limits<float>::quiet_NaN()); }

inline std::vector<std::uint32_t> bits(floats const& values)
{
    std::vector<std::uint32_t> result;
    for (float const v : values) {
        result.push_back(std::bit_cast<std::uint32_t>(v));
    }
    return result;
}

/// |actual - expected| <= bound, element by element; a NaN is never within.
inline void check_within(floats const& actual, doubles const& expected, doubles const& bound)
{
    REQUIRE(actual.size() == expected.size());
    REQUIRE(bound.size() == expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
        if (!(std::fabs(static_cast<double>(actual[i]) - expected[i]) <= bound[i])) {
            FAIL_CHECK("element " << i << ": " << actual[i] << " is not within " << bound[i] << " of " << expected[i]);
            return;
        }
    }
    SUCCEED();
}

inline void check_within(floats const& actual, doubles const& expected, double bound) { check_within(actual, expected, doubles(expected.size(), bound)); }

/// f(pool) gives the same bits for 1, 2 and 3 threads, and twice in a row.
template <class F>
void check_threads_change_no_bit(F f)
{
    rheo::tile_pool one{1};
    auto const expected = f(one);
    CHECK(f(one) == expected);
    for (int const threads : {2, 3}) {
        rheo::tile_pool pool{threads};
        CHECK(f(pool) == expected);
        CHECK(f(pool) == expected);
    }
}

/// d f / d x[i] by central differences in double against `gradient`. With h = 1e-5 the truncation is h^2 f'''/6 and the
/// rounding 1e-16 |f| / h: both below 1e-8 for the values of order one that the tests use; the bound leaves a factor 100.
template <class F>
void check_derivative(doubles& x, doubles const& gradient, F f)
{
    REQUIRE(x.size() == gradient.size());
    constexpr double h = 1e-5;
    for (std::size_t i = 0; i < x.size(); ++i) {
        double const kept = x[i];
        x[i] = kept + h;
        double const above = f();
        x[i] = kept - h;
        double const below = f();
        x[i] = kept;
        double const expected = (above - below) / (2 * h);
        if (!(std::fabs(gradient[i] - expected) <= 1e-6 * (1 + std::fabs(expected)))) {
            FAIL_CHECK("element " << i << ": gradient " << gradient[i] << ", finite difference " << expected);
            return;
        }
    }
    SUCCEED();
}

inline double dot(doubles const& a, doubles const& b)
{
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        sum += a[i] * b[i];
    }
    return sum;
}

/// Exact sums with a place to stand.
struct exact_buffer {
    std::vector<std::int64_t> sums;
    rheo::accumulator_state state{};
    int contributions = 8;

    explicit exact_buffer(std::int64_t count, int scale_log2 = 30) : sums(size(count)), state{.scale_log2 = scale_log2} {}

    rheo::gradient_sum_of<dtype::i64> target() { return {.sums = sums.data(), .state = &state, .contributions = contributions}; }

    floats values() const
    {
        floats result;
        for (auto const s : sums) {
            result.push_back(rheo::value_of(s, state.scale_log2));
        }
        return result;
    }

    friend bool operator==(exact_buffer const&, exact_buffer const&) = default;
};

/// Exact sums of 32 bits, with a scale of its own for each row.
struct row_buffer {
    std::int64_t width;
    std::vector<std::int32_t> sums;
    std::vector<rheo::row_sum_state> states;
    int contributions = 8;

    row_buffer(std::int64_t rows, std::int64_t row_width, int least_scale_log2 = 10) : width{row_width}, sums(size(rows * row_width)), states(size(rows))
    {
        for (std::size_t r = 0; r < states.size(); ++r) {
            states[r].scale_log2 = least_scale_log2 + static_cast<int>(r % 5);
        }
    }

    rheo::gradient_sum_of<dtype::i32> target() { return {.sums = sums.data(), .states = states.data(), .width = width, .contributions = contributions}; }

    friend bool operator==(row_buffer const&, row_buffer const&) = default;
};

/// That they say what sums of 64 bits say into which the same went at the scale of each row: add(buffer) adds to such. Of an element that is left out in 32 bits
/// nothing is asked, and of the sizes in the rows' states only that the largest is the tensor's.
template <class Add>
void check_as_in_64_bits(row_buffer const& rows, Add add)
{
    float largest = 0;
    for (std::size_t r = 0; r < rows.states.size(); ++r) {
        auto const& state = rows.states[r];
        exact_buffer all{static_cast<std::int64_t>(rows.sums.size()), state.scale_log2};
        all.contributions = rows.contributions;
        add(all);
        largest = std::max(largest, state.max_abs);
        CHECK((r + 1 < rows.states.size() || largest == all.state.max_abs));
        if (overflowed(state, rows.contributions)) {
            continue;
        }
        for (auto i = r * size(rows.width); i < (r + 1) * size(rows.width); ++i) {
            REQUIRE(all.sums[i] == rows.sums[i]);
        }
    }
}

/// Half a unit of the exact sum: what rounding to fixed point adds to any bound.
inline double fixed_error(exact_buffer const& buffer) { return std::ldexp(0.5, -buffer.state.scale_log2); }

}  // namespace support
