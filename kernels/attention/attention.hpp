#pragma once
// SPDX-License-Identifier: Apache-2.0

// Causal attention of many heads over packed q, k, v, as GPT-2 has them: a row of qkv is q of all heads, then k,
// then v. Probabilities are softmax(q k / sqrt(head width)) over j <= i, with dropout on them. Forward
// keeps the log of the sum of exponentials, from which backward computes them again (Dao et al.:
// "FlashAttention", 2022, without its tiling of the softmax: a block of query rows sees all its keys).

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/dropout/dropout.hpp"
#include "rheo/tensor/dtype.hpp"

namespace rheo::inline v0 {

template <dtype_policy Policy = fp32>
struct attention_forward_arguments {
    std::int64_t batch;
    std::int64_t length;  ///< tokens of a sequence
    std::int64_t width;   ///< of the model, a multiple of heads
    std::int64_t heads;
    storage_t<Policy> const* qkv;         // [batch * length, 3 * width]
    dropout drop{};                       ///< element ((b * heads + h) * length + i) * length + j
    storage_t<Policy>* output;            // [batch * length, width]
    compute_t<Policy>* log_sum_exp;       // [batch, heads, length]
};

template <dtype_policy Policy = fp32>
struct attention_backward_arguments {
    std::int64_t batch;
    std::int64_t length;
    std::int64_t width;
    std::int64_t heads;
    storage_t<Policy> const* qkv;              // [batch * length, 3 * width]
    storage_t<Policy> const* output;           // [batch * length, width]
    compute_t<Policy> const* log_sum_exp;      // [batch, heads, length]
    storage_t<Policy> const* output_gradient;  // [batch * length, width]
    dropout drop{};
    storage_t<Policy>* qkv_gradient;           // [batch * length, 3 * width]
};

namespace definition {

/// q . k / sqrt(head width) of head h, query row i, key row j (rows of the microbatch).
template <dtype_policy Policy>
compute_t<Policy> attention_score(storage_t<Policy> const* qkv, std::int64_t width, std::int64_t heads, std::int64_t h,
                                  std::int64_t i, std::int64_t j)
{
    using compute = compute_t<Policy>;
    std::int64_t const d = width / heads;
    auto const* q = qkv + i * 3 * width + h * d;
    auto const* k = qkv + j * 3 * width + width + h * d;
    compute sum = 0;
    for (std::int64_t c = 0; c < d; ++c) {
        sum += compute(q[c]) * compute(k[c]);
    }
    return sum / std::sqrt(static_cast<compute>(d));
}

template <dtype_policy Policy>
void attention_forward(attention_forward_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    dropout_factor<compute> const factor{a.drop};
    std::int64_t const d = a.width / a.heads;
    for (std::int64_t b = 0; b < a.batch; ++b) {
        for (std::int64_t h = 0; h < a.heads; ++h) {
            for (std::int64_t i = 0; i < a.length; ++i) {
                std::int64_t const row = b * a.length + i;
                std::int64_t const element = ((b * a.heads + h) * a.length + i) * a.length;
                compute largest = -std::numeric_limits<compute>::infinity();
                for (std::int64_t j = 0; j <= i; ++j) {
                    auto const s = attention_score<Policy>(a.qkv, a.width, a.heads, h, row, b * a.length + j);
                    largest = s > largest ? s : largest;
                }
                compute sum = 0;
                for (std::int64_t j = 0; j <= i; ++j) {
                    sum += std::exp(attention_score<Policy>(a.qkv, a.width, a.heads, h, row, b * a.length + j) - largest);
                }
                compute const log_sum = largest + std::log(sum);
                a.log_sum_exp[(b * a.heads + h) * a.length + i] = log_sum;
                for (std::int64_t c = 0; c < d; ++c) {
                    compute out = 0;
                    for (std::int64_t j = 0; j <= i; ++j) {
                        compute const p = std::exp(
                            attention_score<Policy>(a.qkv, a.width, a.heads, h, row, b * a.length + j) - log_sum);
                        auto const* v = a.qkv + (b * a.length + j) * 3 * a.width + 2 * a.width + h * d;
                        out += p * factor(element + j) * compute(v[c]);
                    }
                    a.output[row * a.width + h * d + c] = static_cast<storage_t<Policy>>(out);
                }
            }
        }
    }
}

template <dtype_policy Policy>
void attention_backward(attention_backward_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    dropout_factor<compute> const factor{a.drop};
    std::int64_t const d = a.width / a.heads;
    compute const scale = compute(1) / std::sqrt(static_cast<compute>(d));
    for (std::int64_t i = 0; i < a.batch * a.length * 3 * a.width; ++i) {
        a.qkv_gradient[i] = 0;
    }
    for (std::int64_t b = 0; b < a.batch; ++b) {
        for (std::int64_t h = 0; h < a.heads; ++h) {
            for (std::int64_t i = 0; i < a.length; ++i) {
                std::int64_t const row = b * a.length + i;
                std::int64_t const element = ((b * a.heads + h) * a.length + i) * a.length;
                auto const* dout = a.output_gradient + row * a.width + h * d;
                compute mean = 0;  // of the gradient of the probabilities, = dout . out
                for (std::int64_t c = 0; c < d; ++c) {
                    mean += compute(dout[c]) * compute(a.output[row * a.width + h * d + c]);
                }
                for (std::int64_t j = 0; j <= i; ++j) {
                    std::int64_t const key = b * a.length + j;
                    auto const* q = a.qkv + row * 3 * a.width + h * d;
                    auto const* k = a.qkv + key * 3 * a.width + a.width + h * d;
                    auto const* v = k + a.width;
                    auto* dq = a.qkv_gradient + row * 3 * a.width + h * d;
                    auto* dk = a.qkv_gradient + key * 3 * a.width + a.width + h * d;
                    auto* dv = dk + a.width;
                    compute const p = std::exp(attention_score<Policy>(a.qkv, a.width, a.heads, h, row, key) -
                                               a.log_sum_exp[(b * a.heads + h) * a.length + i]);
                    compute dp = 0;
                    for (std::int64_t c = 0; c < d; ++c) {
                        dp += compute(dout[c]) * compute(v[c]);
                    }
                    compute const ds = p * (dp * factor(element + j) - mean) * scale;
                    for (std::int64_t c = 0; c < d; ++c) {
                        dv[c] = static_cast<storage_t<Policy>>(compute(dv[c]) + p * factor(element + j) * compute(dout[c]));
                        dq[c] = static_cast<storage_t<Policy>>(compute(dq[c]) + ds * compute(k[c]));
                        dk[c] = static_cast<storage_t<Policy>>(compute(dk[c]) + ds * compute(q[c]));
                    }
                }
            }
        }
    }
}

}  // namespace definition

class tile_pool;

namespace host {

void attention_forward(tile_pool& pool, attention_forward_arguments<> const& arguments);
void attention_backward(tile_pool& pool, attention_backward_arguments<> const& arguments);

}  // namespace host
}  // namespace rheo::inline v0
