#pragma once
// SPDX-License-Identifier: Apache-2.0

// Along a row: the product of two, layer and root-mean-square normalisation with their gradients, and turned pairs.

#include "kernels/detail/loops/lanes.hpp"

namespace rheo::inline v0::detail {
namespace {

float dot(count_t n, float const* a, float const* b)
{
    lanes s0{};
    lanes s1{};
    count_t i = 0;
    for (; i + 2 * width <= n; i += 2 * width) {
        s0 += load(a + i) * load(b + i);
        s1 += load(a + i + width) * load(b + i + width);
    }
    for (; i + width <= n; i += width) {
        s0 += load(a + i) * load(b + i);
    }
    if (i < n) {
        s1 += load_part(a + i, n - i, 0) * load_part(b + i, n - i, 0);
    }
    return fold_sum(s0 + s1);
}

/// The sum of term(element) along a row, in four sums side by side; lanes beyond the row's end hold `rest`, whose term is zero.
template <class Term>
RHEO_INLINE float row_total(count_t n, float const* x, float rest, Term term)
{
    lanes s0{};
    lanes s1{};
    lanes s2{};
    lanes s3{};
    count_t i = 0;
    for (; i + 4 * width <= n; i += 4 * width) {
        s0 += term(load(x + i));
        s1 += term(load(x + i + width));
        s2 += term(load(x + i + 2 * width));
        s3 += term(load(x + i + 3 * width));
    }
    for (; i + width <= n; i += width) {
        s0 += term(load(x + i));
    }
    if (i < n) {
        s1 += term(load_part(x + i, n - i, rest));
    }
    return fold_sum((s0 + s1) + (s2 + s3));
}

RHEO_INLINE float row_sum(count_t n, float const* x)
{
    return row_total(n, x, 0, [](lanes v) __attribute__((always_inline)) { return v; });
}

RHEO_INLINE float row_squares(count_t n, float const* x, float mean)
{
    return row_total(n, x, mean, [mean](lanes v) __attribute__((always_inline)) { return (v - mean) * (v - mean); });
}

void norm_forward(count_t n, float epsilon, float const* x, float const* gamma, float const* beta, float* y, float* mean, float* rstd)
{
    float const m = row_sum(n, x) / static_cast<float>(n);
    float const r = 1.0F / __builtin_sqrtf(row_squares(n, x, m) / static_cast<float>(n) + epsilon);
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        y[i] = (x[i] - m) * r * gamma[i] + beta[i];
    }
    *mean = m;
    *rstd = r;
}

void norm_backward(count_t n, float const* x, float const* gamma, float mean, float rstd, float const* dy, float const* bypass, float* dx)
{
    lanes s0{};
    lanes s1{};
    lanes p0{};
    lanes p1{};
    count_t i = 0;
    for (; i + 2 * width <= n; i += 2 * width) {
        lanes const a = load(gamma + i) * load(dy + i);
        lanes const b = load(gamma + i + width) * load(dy + i + width);
        s0 += a;
        s1 += b;
        p0 += a * ((load(x + i) - mean) * rstd);
        p1 += b * ((load(x + i + width) - mean) * rstd);
    }
    for (; i < n; i += width) {
        count_t const part = n - i < width ? n - i : width;
        lanes const a = load_part(gamma + i, part, 0) * load_part(dy + i, part, 0);
        s0 += a;
        p0 += a * ((load_part(x + i, part, mean) - mean) * rstd);
    }
    float const sum = fold_sum(s0 + s1) / static_cast<float>(n);
    float const projected = fold_sum(p0 + p1) / static_cast<float>(n);
    if (bypass == nullptr) {
        RHEO_INDEPENDENT
        for (i = 0; i < n; ++i) {
            dx[i] = (gamma[i] * dy[i] - sum - (x[i] - mean) * rstd * projected) * rstd;
        }
    } else {
        RHEO_INDEPENDENT
        for (i = 0; i < n; ++i) {
            dx[i] = (gamma[i] * dy[i] - sum - (x[i] - mean) * rstd * projected) * rstd + bypass[i];
        }
    }
}

void rms_forward(count_t n, float epsilon, float const* x, float const* gamma, float* y, float* rstd)
{
    float const r = 1.0F / __builtin_sqrtf(row_squares(n, x, 0) / static_cast<float>(n) + epsilon);
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        y[i] = x[i] * r * gamma[i];
    }
    *rstd = r;
}

void rms_backward(count_t n, float const* x, float const* gamma, float rstd, float const* dy, float const* bypass, float* dx)
{
    lanes p0{};
    lanes p1{};
    count_t i = 0;
    for (; i + 2 * width <= n; i += 2 * width) {
        p0 += load(gamma + i) * load(dy + i) * (load(x + i) * rstd);
        p1 += load(gamma + i + width) * load(dy + i + width) * (load(x + i + width) * rstd);
    }
    for (; i < n; i += width) {
        count_t const part = n - i < width ? n - i : width;
        p0 += load_part(gamma + i, part, 0) * load_part(dy + i, part, 0) * (load_part(x + i, part, 0) * rstd);
    }
    float const projected = fold_sum(p0 + p1) / static_cast<float>(n);
    if (bypass == nullptr) {
        RHEO_INDEPENDENT
        for (i = 0; i < n; ++i) {
            dx[i] = (gamma[i] * dy[i] - x[i] * rstd * projected) * rstd;
        }
    } else {
        RHEO_INDEPENDENT
        for (i = 0; i < n; ++i) {
            dx[i] = (gamma[i] * dy[i] - x[i] * rstd * projected) * rstd + bypass[i];
        }
    }
}

void turn(count_t n, float const* cosines, float const* sines, float const* x, float* y)
{
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        float const low = x[i];
        float const high = x[n + i];
        y[i] = low * cosines[i] - high * sines[i];
        y[n + i] = high * cosines[i] + low * sines[i];
    }
}

void turn_back(count_t n, float const* cosines, float const* sines, float const* x, float* y)
{
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        float const low = x[i];
        float const high = x[n + i];
        y[i] = low * cosines[i] + high * sines[i];
        y[n + i] = high * cosines[i] - low * sines[i];
    }
}

}  // namespace
}  // namespace rheo::inline v0::detail
