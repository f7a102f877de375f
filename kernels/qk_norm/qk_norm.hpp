#pragma once
// SPDX-License-Identifier: Apache-2.0

// Root-mean-square norms of queries and keys (Henry et al.: "Query-key normalization for transformers", 2020; with a weight for each element of a head, as
// Qwen3 has them): each head of q and of k in packed q, k, v is a row of its own, all heads of q with one gamma, all of k with another, and the values are
// copied. y = gamma x rstd, rstd = 1/sqrt(mean of x^2 + epsilon), which forward keeps of each head and row.

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "kernels/cuda/workspace.hpp"
#include "kernels/exact/exact.hpp"
#include "kernels/rms_norm/rms_norm.hpp"
#include "rheo/tensor/dtype.hpp"

namespace rheo::inline v0 {

template <dtype_policy Policy = fp32>
struct qk_norm_forward_arguments {
    std::int64_t rows;
    std::int64_t heads;     ///< of q
    std::int64_t kv_heads;  ///< of k, and of v
    std::int64_t head_width;
    double epsilon = 1e-5;
    storage_t<Policy> const* input;        // [rows, heads + 2 kv_heads, head_width]
    storage_t<Policy> const* query_gamma;  // [head_width]
    storage_t<Policy> const* key_gamma;    // [head_width]
    storage_t<Policy>* output;             // as input, not input
    compute_t<Policy>* rstd;               // [heads + kv_heads, rows]
};

template <dtype_policy Policy = fp32>
struct qk_norm_backward_input_arguments {
    std::int64_t rows;
    std::int64_t heads;
    std::int64_t kv_heads;
    std::int64_t head_width;
    storage_t<Policy> const* input;            // [rows, heads + 2 kv_heads, head_width]
    storage_t<Policy> const* query_gamma;      // [head_width]
    storage_t<Policy> const* key_gamma;        // [head_width]
    compute_t<Policy> const* rstd;             // [heads + kv_heads, rows]
    storage_t<Policy> const* output_gradient;  // as input
    storage_t<Policy>* input_gradient;         // as input, may be output_gradient
};

template <dtype_policy Policy = fp32>
struct qk_norm_backward_weight_arguments {
    std::int64_t rows;
    std::int64_t heads;
    std::int64_t kv_heads;
    std::int64_t head_width;
    storage_t<Policy> const* input;            // [rows, heads + 2 kv_heads, head_width]
    compute_t<Policy> const* rstd;             // [heads + kv_heads, rows]
    storage_t<Policy> const* output_gradient;  // as input
    gradient_sum<Policy> query_gradient;       // [head_width], null sums: not wanted
    gradient_sum<Policy> key_gradient;         // [head_width], the same
};

namespace definition {

/// Calls norm(first element, gamma, place of 1/root) for the heads of q and k of each row, and copies those of v.
template <class Arguments, class T, class Norm>
void norm_heads(Arguments const& a, T const* from, T* to, Norm const& norm)
{
    auto const all = a.heads + 2 * a.kv_heads;
    for (std::int64_t r = 0; r < a.rows; ++r) {
        for (std::int64_t h = 0; h < all; ++h) {
            auto const first = (r * all + h) * a.head_width;
            if (h < a.heads + a.kv_heads) {
                norm(first, h < a.heads ? a.query_gamma : a.key_gamma, h * a.rows + r);
            } else {
                std::copy_n(from + first, a.head_width, to + first);
            }
        }
    }
}

template <dtype_policy Policy>
void qk_norm_forward(qk_norm_forward_arguments<Policy> const& a)
{
    norm_heads(a, a.input, a.output, [&](std::int64_t first, storage_t<Policy> const* gamma, std::int64_t root) {
        rms_norm_forward(rms_norm_forward_arguments<Policy>{.rows = 1,
                                                            .width = a.head_width,
                                                            .epsilon = a.epsilon,
                                                            .input = a.input + first,
                                                            .gamma = gamma,
                                                            .output = a.output + first,
                                                            .rstd = a.rstd + root});
    });
}

template <dtype_policy Policy>
void qk_norm_backward_input(qk_norm_backward_input_arguments<Policy> const& a)
{
    norm_heads(a, a.output_gradient, a.input_gradient, [&](std::int64_t first, storage_t<Policy> const* gamma, std::int64_t root) {
        rms_norm_backward_input(rms_norm_backward_input_arguments<Policy>{.rows = 1,
                                                                          .width = a.head_width,
                                                                          .input = a.input + first,
                                                                          .gamma = gamma,
                                                                          .rstd = a.rstd + root,
                                                                          .output_gradient = a.output_gradient + first,
                                                                          .input_gradient = a.input_gradient + first});
    });
}

template <dtype_policy Policy>
void qk_norm_backward_weight(qk_norm_backward_weight_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    auto const all = a.heads + 2 * a.kv_heads;
    auto const add = [&](std::int64_t first, std::int64_t last, gradient_sum<Policy> const& target) {
        for (std::int64_t c = 0; c < a.head_width && target.sums != nullptr; ++c) {
            compute gamma = 0;
            for (std::int64_t h = first; h < last; ++h) {
                for (std::int64_t r = 0; r < a.rows; ++r) {
                    auto const i = (r * all + h) * a.head_width + c;
                    gamma += compute(a.output_gradient[i]) * (compute(a.input[i]) * a.rstd[h * a.rows + r]);
                }
            }
            contribute(target, c, gamma);
        }
    };
    add(0, a.heads, a.query_gradient);
    add(a.heads, a.heads + a.kv_heads, a.key_gradient);
}

}  // namespace definition

class tile_pool;

namespace host {

void qk_norm_forward(tile_pool& pool, qk_norm_forward_arguments<> const& arguments);
void qk_norm_backward_input(tile_pool& pool, qk_norm_backward_input_arguments<> const& arguments);
void qk_norm_backward_weight(tile_pool& pool, qk_norm_backward_weight_arguments<> const& arguments);
void qk_norm_backward_weight(tile_pool& pool, qk_norm_backward_weight_arguments<fp32_i32> const& arguments);

}  // namespace host

namespace cuda {

// Policy is fp32 or bf16, of backward_weight also fp32_i32 or bf16_i32; pointers are the device's, and results are there when the stream is.
template <dtype_policy Policy>
void qk_norm_forward(stream queue, qk_norm_forward_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void qk_norm_backward_input(stream queue, qk_norm_backward_input_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void qk_norm_backward_weight(stream queue, workspace scratch, qk_norm_backward_weight_arguments<Policy> const& arguments);

/// Bytes of workspace that qk_norm_backward_weight wants.
std::int64_t qk_norm_backward_weight_workspace_bytes(std::int64_t rows, std::int64_t heads, std::int64_t head_width);

}  // namespace cuda
}  // namespace rheo::inline v0
