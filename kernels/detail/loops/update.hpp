#pragma once
// SPDX-License-Identifier: Apache-2.0

// A step of AdamW, and the sum of squares that clipping needs.

#include "kernels/detail/loops/lanes.hpp"

namespace rheo::inline v0::detail {
namespace {

void adamw(count_t n, adamw_step const& step, float const* gradient, float* m, float* v, float* master)
{
    adamw_step const s = step;
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        float const g = gradient[i] * s.multiplier;
        float const first = s.beta1 * m[i] + s.one_less_beta1 * g;
        float const second = s.beta2 * v[i] + s.one_less_beta2 * (g * g);
        float const change = first * s.correction1 / (__builtin_sqrtf(second * s.correction2) + s.epsilon) + s.decay * master[i];
        m[i] = first;
        v[i] = second;
        master[i] -= s.rate * change;
    }
}

double sum_of_squares(count_t n, float const* g)
{
    double lane[16] = {};
    count_t i = 0;
    for (; i + width <= n; i += width) {
        for (int l = 0; l < 16; ++l) {
            double const x = static_cast<double>(g[i + l]);
            lane[l] += x * x;
        }
    }
    for (int l = 0; i < n; ++i, ++l) {
        double const x = static_cast<double>(g[i]);
        lane[l] += x * x;
    }
    for (int half = 8; half > 0; half /= 2) {
        for (int l = 0; l < half; ++l) {
            lane[l] += lane[l + half];
        }
    }
    return lane[0];
}

}  // namespace
}  // namespace rheo::inline v0::detail
