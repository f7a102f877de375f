#pragma once
// SPDX-License-Identifier: Apache-2.0

// Sixteen lanes of one type, on every processor: narrower ones take several registers for them. Loads and stores of whole
// and of partial runs, and the fixed orders in which lanes are folded.
//
// The headers of this folder are parts of loops.cpp and of nothing else. It is compiled once per instruction set level, so
// everything in them has internal linkage and nothing from the standard library is instantiated, or the linker
// could give one level's code to another.

#include <string.h>

#include "kernels/detail/loops.hpp"

namespace rheo::inline v0::detail {
namespace {

using lanes = float __attribute__((vector_size(64)));
using int_lanes = std::int32_t __attribute__((vector_size(64)));
constexpr count_t width = 16;

#define RHEO_INLINE static inline __attribute__((always_inline))
// An output that is an input, element for element, is no dependence between iterations; the compiler cannot know.
#if defined(__clang__)
#define RHEO_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define RHEO_INDEPENDENT _Pragma("GCC ivdep")
#endif

RHEO_INLINE lanes load(float const* p)
{
    lanes v;
    memcpy(&v, p, sizeof v);
    return v;
}

RHEO_INLINE void store(float* p, lanes v) { memcpy(p, &v, sizeof v); }

RHEO_INLINE lanes all(float value) { return lanes{} + value; }

/// The last n < 16 elements; the other lanes hold `rest`.
RHEO_INLINE lanes load_part(float const* p, count_t n, float rest)
{
    lanes v = all(rest);
    memcpy(&v, p, static_cast<size_t>(n) * sizeof(float));
    return v;
}

RHEO_INLINE void store_part(float* p, count_t n, lanes v) { memcpy(p, &v, static_cast<size_t>(n) * sizeof(float)); }

/// Lane l and lane l + 8, then 4, 2, 1.
RHEO_INLINE float fold_sum(lanes v)
{
    float a[16];
    memcpy(a, &v, sizeof v);
    for (int half = 8; half > 0; half /= 2) {
        for (int l = 0; l < half; ++l) {
            a[l] += a[l + half];
        }
    }
    return a[0];
}

RHEO_INLINE float fold_max(lanes v)
{
    float a[16];
    memcpy(a, &v, sizeof v);
    for (int l = 1; l < 16; ++l) {
        a[0] = a[l] > a[0] ? a[l] : a[0];
    }
    return a[0];
}

}  // namespace
}  // namespace rheo::inline v0::detail
