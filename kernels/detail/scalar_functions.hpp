#pragma once
// SPDX-License-Identifier: Apache-2.0

// Logarithm and cosine in double by sums and products alone, so that all machines agree, devices too. Parts of the loops (see
// loops/lanes.hpp) as well as of kernels: so of internal linkage and without the standard library.

#include <stdint.h>

namespace rheo::inline v0::detail {
namespace {

/// ln x for normal x > 0: x = m 2^e, sqrt(1/2) <= m < sqrt(2), ln m = 2 atanh((m-1)/(m+1)) by its series. Error below 4e-16
/// of the larger of 1 and |ln x|.
[[gnu::always_inline]] constexpr double log_of(double x)
{
    auto const bits = __builtin_bit_cast(uint64_t, x);
    // Adding (1 - sqrt(1/2))'s bits carries into the exponent exactly when the mantissa exceeds sqrt(2).
    uint64_t const shifted = bits + (0x3ff0000000000000U - 0x3fe6a09e667f3bcdU);
    uint64_t const exponent = shifted >> 52;  // biased
    uint64_t const mantissa = (shifted & 0x000fffffffffffffU) + 0x3fe6a09e667f3bcdU;
    uint64_t const whole = exponent | 0x4330000000000000U;  // 2^52 + exponent, as a double
    double const e = __builtin_bit_cast(double, whole) - (4503599627370496.0 + 1023.0);
    auto const m = __builtin_bit_cast(double, mantissa);
    double const s = (m - 1.0) / (m + 1.0);
    double const q = s * s;
    double p = 1.0 / 23.0;
    p = p * q + 1.0 / 21.0;
    p = p * q + 1.0 / 19.0;
    p = p * q + 1.0 / 17.0;
    p = p * q + 1.0 / 15.0;
    p = p * q + 1.0 / 13.0;
    p = p * q + 1.0 / 11.0;
    p = p * q + 1.0 / 9.0;
    p = p * q + 1.0 / 7.0;
    p = p * q + 1.0 / 5.0;
    p = p * q + 1.0 / 3.0;
    double const log_m = 2.0 * s + 2.0 * s * (q * p);
    return e * 6.93147180369123816490e-01 + (log_m + e * 1.90821492927058770002e-10);
}

/// cos(2 pi word / 2^32): folded to sin(y), |y| <= pi/2, Taylor to y^21. Error below 1e-15.
[[gnu::always_inline]] constexpr double cos_of_turn(uint32_t word)
{
    double f = static_cast<double>(static_cast<int32_t>(word ^ 0x80000000U)) * (1.0 / 4294967296.0);  // turn - 1/2
    f = f < 0 ? -f : f;
    double const y = (0.25 - f) * 6.283185307179586476925;
    double const q = y * y;
    // Horner, from y^21 down; signs alternate
    double h = 1.0 / 51090942171709440000.0;
    h = h * q - 1.0 / 121645100408832000.0;
    h = h * q + 1.0 / 355687428096000.0;
    h = h * q - 1.0 / 1307674368000.0;
    h = h * q + 1.0 / 6227020800.0;
    h = h * q - 1.0 / 39916800.0;
    h = h * q + 1.0 / 362880.0;
    h = h * q - 1.0 / 5040.0;
    h = h * q + 1.0 / 120.0;
    h = h * q - 1.0 / 6.0;
    return -(y + y * (q * h));
}

/// The standard normal value of two random words.
[[gnu::always_inline]] constexpr double normal_of(uint32_t first, uint32_t second)
{
    double const u = (static_cast<double>(first) + 1.0) * (1.0 / 4294967296.0);
    return __builtin_sqrt(-2.0 * log_of(u)) * cos_of_turn(second);
}

}  // namespace
}  // namespace rheo::inline v0::detail
