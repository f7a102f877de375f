#pragma once
// SPDX-License-Identifier: Apache-2.0

// What all kernels of the device are held to: bits that depend on nothing but the arguments, and errors no larger than those of the
// definition run in the same policy, which is what a plain loop over the same stored values would have given.

#include <algorithm>
#include <tuple>

#include "../support.hpp"
#include "device.hpp"
#include "kernels/cuda/policy.hpp"

namespace laws {

using rheo::bfloat16;
using namespace support;

template <class T>
inline constexpr rheo::dtype_policy policy = rheo::cuda::policy_storing<T>;

/// The unit roundoff of what T stores.
template <class T>
inline constexpr double roundoff = sizeof(T) == 2 ? 0x1p-8 : 0x1p-24;

/// Values as T stores them.
template <class T>
std::vector<T> stored(floats const& values)
{
    std::vector<T> result;
    for (float const v : values) {
        result.push_back(static_cast<T>(v));
    }
    return result;
}

template <class T>
doubles widened(std::vector<T> const& values)
{
    doubles result;
    for (T const v : values) {
        result.push_back(static_cast<double>(static_cast<float>(v)));
    }
    return result;
}

template <class T>
floats single(std::vector<T> const& values)
{
    floats result;
    for (T const v : values) {
        result.push_back(static_cast<float>(v));
    }
    return result;
}

/// Values of what T stores as another policy stores them.
template <class To, class T>
std::vector<To> as(std::vector<T> const& values)
{
    std::vector<To> result;
    for (T const v : values) {
        result.push_back(static_cast<To>(static_cast<float>(v)));
    }
    return result;
}

/// Several arrays as their bits, to compare.
template <class... T>
std::vector<std::vector<std::uint32_t>> all_bits(std::vector<T> const&... values)
{
    return {bits(single(values))...};
}

/// Exact sums on the device.
struct device_sums {
    device::array<std::int64_t> sums;
    device::array<rheo::accumulator_state> state;
    int contributions;

    explicit device_sums(exact_buffer const& buffer) : sums{buffer.sums}, state{std::vector{buffer.state}}, contributions{buffer.contributions} {}

    rheo::gradient_sum_of<dtype::i64> target() const { return {.sums = sums.data(), .state = state.data(), .contributions = contributions}; }

    exact_buffer host() const
    {
        CHECK((sums.margins_kept() && state.margins_kept()));
        auto const values = sums.host();
        exact_buffer result{std::ssize(values)};
        result.sums = values;
        result.state = state.host().front();
        result.contributions = contributions;
        return result;
    }
};

/// The same in 32 bits.
struct device_rows {
    device::array<std::int32_t> sums;
    device::array<rheo::row_sum_state> states;
    row_buffer like;

    explicit device_rows(row_buffer const& buffer, std::size_t offset = 0) : sums{buffer.sums, offset}, states{buffer.states}, like{buffer} {}
    rheo::gradient_sum_of<dtype::i32> target() const
    {
        return {.sums = sums.data(), .states = states.data(), .width = like.width, .contributions = like.contributions};
    }
    row_buffer host() const
    {
        CHECK((sums.margins_kept() && states.margins_kept()));
        auto result = like;
        result.sums = sums.host();
        result.states = states.host();
        return result;
    }
};

/// f() gives the same in every order of blocks and threads, and twice in a row; what it gives is returned.
template <class F>
auto same_in_every_order(F f)
{
    device::set_order(0);
    auto const expected = f();
    for (unsigned order = 0; order < device::orders; ++order) {
        INFO("order " << order);
        device::set_order(order);
        CHECK(f() == expected);
    }
    device::set_order(0);
    return expected;
}

/// The root of the mean square of actual - expected, over that of expected.
inline double relative_error(floats const& actual, doubles const& expected)
{
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
        double const difference = static_cast<double>(actual[i]) - expected[i];
        error += difference * difference;
        size += expected[i] * expected[i];
    }
    return std::sqrt(error / std::max(size, 1e-300));
}

/// No worse than the definition in the same policy: beyond the rounding of what is stored, which both do, a twentieth is left for the other order of sums.
template <class T>
void check_no_worse(std::vector<T> const& actual, std::vector<T> const& defined, doubles const& expected)
{
    CHECK(relative_error(single(actual), expected) <= 1.05 * relative_error(single(defined), expected) + 1e-6);
}

}  // namespace laws
