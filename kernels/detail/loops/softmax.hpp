#pragma once
// SPDX-License-Identifier: Apache-2.0

// Softmax and the log of a sum of exponentials, for attention and for the loss.

#include "kernels/detail/loops/exponential.hpp"

namespace rheo::inline v0::detail {
namespace {

RHEO_INLINE float row_max(count_t n, float const* x)
{
    lanes m0 = all(-__builtin_inff());
    lanes m1 = m0;
    count_t i = 0;
    for (; i + 2 * width <= n; i += 2 * width) {
        lanes const a = load(x + i);
        lanes const b = load(x + i + width);
        m0 = a > m0 ? a : m0;
        m1 = b > m1 ? b : m1;
    }
    for (; i < n; i += width) {
        lanes const a = load_part(x + i, n - i < width ? n - i : width, -__builtin_inff());
        m0 = a > m0 ? a : m0;
    }
    return fold_max(m0 > m1 ? m0 : m1);
}

float softmax(count_t n, float scale, float* s)
{
    float const largest = row_max(n, s) * scale;
    lanes sum{};
    count_t i = 0;
    for (; i + width <= n; i += width) {
        lanes const e = exp_of(load(s + i) * scale - largest);
        store(s + i, e);
        sum += e;
    }
    if (i < n) {
        lanes const e = exp_of(load_part(s + i, n - i, -__builtin_inff()) * scale - largest);
        store_part(s + i, n - i, e);
        sum += e;
    }
    float const total = fold_sum(sum);
    float const inverse = 1.0F / total;
    for (i = 0; i < n; ++i) {
        s[i] *= inverse;
    }
    // total is at least 1 unless something was not finite, and then not-a-number has to come out
    return total >= 1.0F ? static_cast<float>(static_cast<double>(largest) + log_of(static_cast<double>(total))) : __builtin_nanf("");
}

void probabilities(count_t n, float scale, float log_sum, float* s)
{
    count_t i = 0;
    for (; i + width <= n; i += width) {
        store(s + i, exp_of(load(s + i) * scale - log_sum));
    }
    if (i < n) {
        store_part(s + i, n - i, exp_of(load_part(s + i, n - i, 0) * scale - log_sum));
    }
}

void score_gradient(count_t n, float const* p, float mean, float scale, float* dp)
{
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        dp[i] = p[i] * (dp[i] - mean) * scale;
    }
}

/// Blocks of 1024 exponentials are summed in float, the blocks in double: the error does not grow with the row.
double sum_of_exp(count_t n, float const* x, float* of_row)
{
    float const largest = row_max(n, x);
    *of_row = largest;
    double total = 0;
    for (count_t begin = 0; begin < n; begin += 1024) {
        count_t const end = n - begin < 1024 ? n : begin + 1024;
        lanes s0{};
        lanes s1{};
        count_t i = begin;
        for (; i + 2 * width <= end; i += 2 * width) {
            s0 += exp_of(load(x + i) - largest);
            s1 += exp_of(load(x + i + width) - largest);
        }
        for (; i < end; i += width) {
            s0 += exp_of(load_part(x + i, end - i < width ? end - i : width, -__builtin_inff()) - largest);
        }
        total += static_cast<double>(fold_sum(s0 + s1));
    }
    return total;
}

RHEO_INLINE double log_of_sum(double total, float largest)
{
    // total is at least 1 unless something was not finite, and then not-a-number has to come out
    return total >= 1.0 ? static_cast<double>(largest) + log_of(total) : static_cast<double>(__builtin_nanf(""));
}

double log_sum_exp(count_t n, float const* x)
{
    float largest = 0;
    double const total = sum_of_exp(n, x, &largest);
    return log_of_sum(total, largest);
}

/// Of parts of a row, in their order; exp(0) is 1, so of one part it is that of the row.
double joined_log_sum_exp(count_t n, double const* sums, float const* largest)
{
    float most = largest[0];
    for (count_t i = 1; i < n; ++i) {
        most = largest[i] > most ? largest[i] : most;
    }
    double total = 0;
    for (count_t i = 0; i < n; ++i) {
        total += sums[i] * static_cast<double>(exp_of(all(largest[i] - most))[0]);
    }
    return log_of_sum(total, most);
}

void exp_minus(count_t n, float const* x, float shift, float* y)
{
    count_t i = 0;
    for (; i + width <= n; i += width) {
        store(y + i, exp_of(load(x + i) - shift));
    }
    if (i < n) {
        store_part(y + i, n - i, exp_of(load_part(x + i, n - i, 0) - shift));
    }
}

}  // namespace
}  // namespace rheo::inline v0::detail
