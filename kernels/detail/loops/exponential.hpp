#pragma once
// SPDX-License-Identifier: Apache-2.0

// Exponential and logarithm by sums and products alone, so that machines with other mathematics libraries agree.

#include "kernels/detail/loops/lanes.hpp"

namespace rheo::inline v0::detail {
namespace {

/// e^x: x = n ln2 + r with |r| <= ln2 / 2, polynomial of Cephes's expf. Relative error below 3e-7 for -87.33 < x <= 88;
/// zero below, e^88 above; not-a-number stays.
RHEO_INLINE lanes exp_of(lanes x)
{
    x = x > 88.0F ? all(88.0F) : x;
    int_lanes const vanishes = x < -87.33F;
    lanes const shifted = x * 1.44269504F + 12582912.0F;  // 1.5 * 2^23: the low bits are now n
    lanes const n = shifted - 12582912.0F;
    lanes const r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
    lanes p = r * 1.9875691500e-4F + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * (r * r) + r + 1.0F;
    using uint_lanes = std::uint32_t __attribute__((vector_size(64)));
    auto const power = (reinterpret_cast<uint_lanes>(shifted) << 23) + 0x3f800000U;
    return vanishes ? all(0.0F) : p * reinterpret_cast<lanes>(power);
}

/// ln x for normal x > 0: x = m 2^e, sqrt(1/2) <= m < sqrt(2), ln m = 2 atanh((m-1)/(m+1)) by its series. Error below 4e-16
/// of the larger of 1 and |ln x|.
RHEO_INLINE double log_of(double x)
{
    std::uint64_t bits;
    memcpy(&bits, &x, sizeof x);
    // Adding (1 - sqrt(1/2))'s bits carries into the exponent exactly when the mantissa exceeds sqrt(2).
    std::uint64_t const shifted = bits + (0x3ff0000000000000U - 0x3fe6a09e667f3bcdU);
    std::uint64_t const exponent = shifted >> 52;  // biased
    std::uint64_t const mantissa = (shifted & 0x000fffffffffffffU) + 0x3fe6a09e667f3bcdU;
    std::uint64_t const whole = exponent | 0x4330000000000000U;  // 2^52 + exponent, as a double
    double e;
    double m;
    memcpy(&e, &whole, sizeof e);
    memcpy(&m, &mantissa, sizeof m);
    e -= 4503599627370496.0 + 1023.0;
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

}  // namespace
}  // namespace rheo::inline v0::detail
