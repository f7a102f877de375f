#pragma once
// SPDX-License-Identifier: Apache-2.0

// Sums and masks, element for element.

#include "kernels/detail/loops/lanes.hpp"

namespace rheo::inline v0::detail {
namespace {

void add(count_t n, float const* a, float const* b, float* out)
{
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        out[i] = a[i] + b[i];
    }
}

void drop(count_t n, float const* x, drop_rule const& rule, float* y)
{
    auto const threshold = rule.threshold;
    auto const scale = rule.scale;
    auto const* words = rule.words;
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        y[i] = x[i] * (words[i] < threshold ? 0.0F : scale);
    }
}

void add_dropped(count_t n, float const* stream, float const* branch, drop_rule const& rule, float* out)
{
    auto const threshold = rule.threshold;
    auto const scale = rule.scale;
    auto const* words = rule.words;
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        out[i] = stream[i] + branch[i] * (words[i] < threshold ? 0.0F : scale);
    }
}

}  // namespace
}  // namespace rheo::inline v0::detail
