#pragma once
// SPDX-License-Identifier: Apache-2.0

// A few whole numbers that describe many times: mean and median rounded down, and the 99th percentile by nearest rank, which is one of the times.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct distribution {
    std::int64_t count = 0;
    whole_nanoseconds mean{};
    whole_nanoseconds median{};
    whole_nanoseconds p99{};
    whole_nanoseconds most{};

    friend constexpr bool operator==(distribution const&, distribution const&) = default;
};

namespace detail {

/// Rounded towards the past, so that the same times later have the same middle later.
constexpr whole_nanoseconds middle_of(whole_nanoseconds low, whole_nanoseconds high) { return {low.count + (high.count - low.count) / 2}; }

}  // namespace detail

/// The one of the values that n others stand before when they are sorted. @pre n < values.size(). Cost: linear.
template <class Value>
Value nth_smallest(std::vector<Value> values, std::size_t n)
{
    expects(n < values.size(), "there are not that many values");
    auto const place = values.begin() + static_cast<std::ptrdiff_t>(n);
    std::nth_element(values.begin(), place, values.end());
    return *place;
}

/// The middle of the values; of an even number the lower one of the two in the middle. @pre there are some. Cost: linear.
template <class Value>
Value lower_median(std::vector<Value> values)
{
    auto const middle = (values.size() - 1) / 2;
    return nth_smallest(std::move(values), middle);
}

/// The middle of the times; of an even number the mean of the two in the middle, rounded down. @pre there are some. Cost: linear.
template <class OnlyWhenCalled = void>
whole_nanoseconds median_of(std::vector<whole_nanoseconds> times)
{
    expects(!times.empty(), "a median is that of at least one time");
    auto const middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return times.size() % 2 == 1 ? *middle : detail::middle_of(*std::max_element(times.begin(), middle), *middle);
}

/// All zero for no times. @pre no time is below zero. Cost: linear.
template <class OnlyWhenCalled = void>
distribution distribution_of(std::vector<whole_nanoseconds> times)
{
    distribution d;
    d.count = static_cast<std::int64_t>(times.size());
    if (times.empty()) {
        return d;
    }
    std::int64_t rests = 0;  // quotients and rests are added by themselves: the sum of the times may not fit
    for (auto const time : times) {
        d.mean.count += time.count / d.count;
        rests += time.count % d.count;
        d.most = std::max(d.most, time);
    }
    d.mean.count += rests / d.count;
    auto const rank = times.begin() + static_cast<std::ptrdiff_t>((times.size() * 99 + 99) / 100 - 1);
    std::nth_element(times.begin(), rank, times.end());
    d.p99 = *rank;
    d.median = median_of(std::move(times));
    return d;
}

}  // namespace rheo::inline v0
