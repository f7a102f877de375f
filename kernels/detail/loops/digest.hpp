#pragma once
// SPDX-License-Identifier: Apache-2.0

// The hashes of rheo/tensor/digest.hpp and their sum mod 2^128: eight at a time where the processor multiplies lanes of 64 bits,
// each lane with a sum of 128 bits of its own; one by one where it would have to put such products together.

#include "kernels/detail/loops/lanes.hpp"

namespace rheo::inline v0::detail {
namespace {

#ifdef __AVX512DQ__
using long_lanes = std::uint64_t __attribute__((vector_size(64)));
using pattern_lanes = std::uint32_t __attribute__((vector_size(32)));
constexpr count_t long_width = 8;
#else
using long_lanes = std::uint64_t;
using pattern_lanes = std::uint32_t;
constexpr count_t long_width = 1;
#endif
constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;

RHEO_INLINE long_lanes mix_lanes(long_lanes x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

RHEO_INLINE long_lanes patterns(float const* from)
{
    pattern_lanes bits;
    memcpy(&bits, from, sizeof bits);
#ifdef __AVX512DQ__
    return __builtin_convertvector(bits, long_lanes);
#else
    return bits;
#endif
}

struct digest_lanes {
    long_lanes high, low;
};

/// Adds the hash of a pattern; `place` is the key and its position times the golden number.
RHEO_INLINE void add_hashes(digest_lanes& sum, long_lanes place, long_lanes pattern)
{
    auto const low = mix_lanes(mix_lanes(place) ^ pattern);
    sum.low += low;
    sum.high += mix_lanes(low + 0xd1b54a32d192ed03U);
#ifdef __AVX512DQ__
    sum.high -= (long_lanes)(sum.low < low);  // a carry is -1
#else
    sum.high += sum.low < low ? 1 : 0;
#endif
}

static void digest(std::uint64_t key, std::uint64_t first, count_t n, float const* values, std::uint64_t* high, std::uint64_t* low)
{
    digest_lanes sum{};
    auto place = long_lanes{} + (key + first * golden);
#ifdef __AVX512DQ__
    place += long_lanes{0, 1, 2, 3, 4, 5, 6, 7} * golden;
#endif
    count_t const whole = n / long_width * long_width;
    for (count_t i = 0; i < whole; i += long_width) {
        add_hashes(sum, place, patterns(values + i));
        place += long_width * golden;
    }
#ifdef __AVX512DQ__
    *high = *low = 0;
    auto const add = [&](std::uint64_t more_high, std::uint64_t more_low) {
        *low += more_low;
        *high += more_high + (*low < more_low ? 1 : 0);
    };
    for (int l = 0; l < long_width; ++l) {
        add(sum.high[l], sum.low[l]);
    }
    if (whole < n) {  // lanes beyond the end are not counted
        float rest[long_width] = {};
        memcpy(rest, values + whole, static_cast<size_t>(n - whole) * sizeof(float));
        digest_lanes last{};
        add_hashes(last, place, patterns(rest));
        for (count_t l = 0; l < n - whole; ++l) {
            add(last.high[l], last.low[l]);
        }
    }
#else
    *high = sum.high;
    *low = sum.low;
#endif
}

}  // namespace
}  // namespace rheo::inline v0::detail
