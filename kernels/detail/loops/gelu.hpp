#pragma once
// SPDX-License-Identifier: Apache-2.0

// GELU in the tanh form and its derivative, alone and after a bias.

#include "kernels/detail/loops/exponential.hpp"

namespace rheo::inline v0::detail {
namespace {

/// With u = 2 sqrt(2/pi) (x + 0.044715 x^3): gelu(x) = x / (1 + e^-u), since (1 + tanh(u/2)) / 2 = 1 / (1 + e^-u).
RHEO_INLINE lanes gelu_of(lanes x)
{
    lanes const u = 1.5957691216F * (x + 0.044715F * x * x * x);
    return x / (1.0F + exp_of(-u));
}

RHEO_INLINE lanes gelu_derivative_of(lanes x)
{
    lanes const u = 1.5957691216F * (x + 0.044715F * x * x * x);
    lanes const e = exp_of(-u);
    lanes const s = 1.0F / (1.0F + e);
    lanes const slope = 1.5957691216F * (1.0F + 0.134145F * x * x);
    // s (1 - s) = e s^2, in an order in which e s <= 1 is formed first
    return s + x * slope * ((e * s) * s);
}

void add_gelu(count_t n, float const* bias, float* x, float* activated)
{
    count_t i = 0;
    for (; i + width <= n; i += width) {
        lanes v = load(x + i);
        v = bias != nullptr ? v + load(bias + i) : v;
        store(x + i, v);
        store(activated + i, gelu_of(v));
    }
    if (i < n) {
        lanes v = load_part(x + i, n - i, 0);
        v = bias != nullptr ? v + load_part(bias + i, n - i, 0) : v;
        store_part(x + i, n - i, v);
        store_part(activated + i, n - i, gelu_of(v));
    }
}

void gelu(count_t n, float const* x, float* y)
{
    count_t i = 0;
    for (; i + width <= n; i += width) {
        store(y + i, gelu_of(load(x + i)));
    }
    if (i < n) {
        store_part(y + i, n - i, gelu_of(load_part(x + i, n - i, 0)));
    }
}

void gelu_backward(count_t n, float const* x, float const* dy, float* dx)
{
    count_t i = 0;
    for (; i + width <= n; i += width) {
        store(dx + i, load(dy + i) * gelu_derivative_of(load(x + i)));
    }
    if (i < n) {
        store_part(dx + i, n - i, load_part(dy + i, n - i, 0) * gelu_derivative_of(load_part(x + i, n - i, 0)));
    }
}

}  // namespace
}  // namespace rheo::inline v0::detail
