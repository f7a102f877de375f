#pragma once
// SPDX-License-Identifier: Apache-2.0

// The exponential by sums and products alone, so that machines with other mathematics libraries agree.

#include "kernels/detail/loops/lanes.hpp"
#include "kernels/detail/scalar_functions.hpp"

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

}  // namespace
}  // namespace rheo::inline v0::detail
