#pragma once
// SPDX-License-Identifier: Apache-2.0

// A link whose messages take whole nanoseconds, rounded down once per message, as the analytical network of ASTRA-sim
// has them. The numbers are kept in the units in which that model rounds: converted, some would round to another
// nanosecond. Times that would pass 2^63 - 1 ns stay there, so a sum that overflows is still the largest.

#include <cmath>
#include <cstdint>
#include <limits>

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct integer_link {
    double latency_ns;
    bytes_per_nanosecond rate;

    friend constexpr bool operator==(integer_link, integer_link) = default;
};

constexpr bool is_usable_link(integer_link link)
{
    constexpr auto most = std::numeric_limits<double>::max();
    return link.latency_ns >= 0.0 && link.latency_ns <= most && link.rate.count > 0.0 && link.rate.count <= most;
}

/// The time that stands for all times that do not fit.
inline constexpr whole_nanoseconds endless_nanoseconds{std::numeric_limits<std::int64_t>::max()};

/// The whole part. @pre ns >= 0
inline whole_nanoseconds whole(double ns)
{
    return ns < 9223372036854775808.0 ? whole_nanoseconds{static_cast<std::int64_t>(std::floor(ns))} : endless_nanoseconds;
}

/// @pre both at least 0
constexpr whole_nanoseconds saturating_sum(whole_nanoseconds a, whole_nanoseconds b)
{
    return a.count > endless_nanoseconds.count - b.count ? endless_nanoseconds : a + b;
}

}  // namespace rheo::inline v0
