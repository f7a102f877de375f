#pragma once
// SPDX-License-Identifier: Apache-2.0

// The gated unit g s(g) u, s(g) = 1 / (1 + e^-g), and its gradients.

#include "kernels/detail/loops/exponential.hpp"

namespace rheo::inline v0::detail {
namespace {

RHEO_INLINE lanes swiglu_of(lanes gate, lanes value) { return gate / (1.0F + exp_of(-gate)) * value; }

void swiglu(count_t n, float const* gate, float const* value, float* y)
{
    count_t i = 0;
    for (; i + width <= n; i += width) {
        store(y + i, swiglu_of(load(gate + i), load(value + i)));
    }
    if (i < n) {
        store_part(y + i, n - i, swiglu_of(load_part(gate + i, n - i, 0), load_part(value + i, n - i, 0)));
    }
}

struct swiglu_slopes {
    lanes gate;
    lanes value;
};

RHEO_INLINE swiglu_slopes swiglu_slopes_of(lanes gate, lanes value)
{
    lanes const e = exp_of(-gate);
    lanes const s = 1.0F / (1.0F + e);
    // s (1 - s) = e s^2, in an order in which e s <= 1 is formed first
    return {value * (s + gate * ((e * s) * s)), gate * s};
}

void swiglu_backward(count_t n, float const* gate, float const* value, float const* dy, float* dgate, float* dvalue)
{
    for (count_t i = 0; i < n; i += width) {
        count_t const part = n - i < width ? n - i : width;
        lanes const d = load_part(dy + i, part, 0);
        auto const slopes = swiglu_slopes_of(load_part(gate + i, part, 0), load_part(value + i, part, 0));
        store_part(dgate + i, part, d * slopes.gate);
        store_part(dvalue + i, part, d * slopes.value);
    }
}

}  // namespace
}  // namespace rheo::inline v0::detail
