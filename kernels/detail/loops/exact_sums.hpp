#pragma once
// SPDX-License-Identifier: Apache-2.0

// Floats into sums of integers and back.

#include "kernels/detail/loops/lanes.hpp"

namespace rheo::inline v0::detail {
namespace {

std::uint32_t largest_magnitude(count_t n, float const* g)
{
    int_lanes m0{};
    int_lanes m1{};
    int_lanes const mask = int_lanes{} + 0x7fffffff;
    count_t i = 0;
    for (; i + 2 * width <= n; i += 2 * width) {
        int_lanes const a = reinterpret_cast<int_lanes>(load(g + i)) & mask;
        int_lanes const b = reinterpret_cast<int_lanes>(load(g + i + width)) & mask;
        m0 = a > m0 ? a : m0;
        m1 = b > m1 ? b : m1;
    }
    for (; i < n; i += width) {
        int_lanes const a = reinterpret_cast<int_lanes>(load_part(g + i, n - i < width ? n - i : width, 0)) & mask;
        m0 = a > m0 ? a : m0;
    }
    m0 = m0 > m1 ? m0 : m1;
    std::int32_t lane[16];
    memcpy(lane, &m0, sizeof m0);
    for (int l = 1; l < 16; ++l) {
        lane[0] = lane[l] > lane[0] ? lane[l] : lane[0];
    }
    return static_cast<std::uint32_t>(lane[0]);
}

/// Adds the integers nearest to g * scale, which lie in the low bits of the shifted doubles. @pre they and the sums are within Sum
template <class Sum>
void add_fixed(count_t n, float const* g, double scale, Sum* sums)
{
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        double const shifted = static_cast<double>(g[i]) * scale + 6755399441055744.0;  // 1.5 * 2^52
        std::int64_t bits;
        memcpy(&bits, &shifted, sizeof bits);
        sums[i] += static_cast<Sum>(bits - 0x4338000000000000);
    }
}

template <class Sum>
void add_integers(count_t n, Sum const* source, Sum* target)
{
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        target[i] += source[i];
    }
}

template <class Sum>
void to_floats(count_t n, Sum const* sums, double scale, float* out)
{
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        out[i] = static_cast<float>(static_cast<double>(sums[i]) * scale);
    }
}

}  // namespace
}  // namespace rheo::inline v0::detail
