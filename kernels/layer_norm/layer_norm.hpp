#pragma once
// SPDX-License-Identifier: Apache-2.0

// Layer normalisation over the width of each row (Ba, Kiros, Hinton, 2016), the variance without Bessel's
// correction: y = gamma (x - mean) rstd + beta. Forward keeps mean and 1/sqrt(var + epsilon) of each row.
// Backward can add the gradient that bypasses the norm, which is what a residual stream needs.

#include <cmath>
#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "kernels/cuda/workspace.hpp"
#include "kernels/exact/exact.hpp"
#include "rheo/tensor/dtype.hpp"

namespace rheo::inline v0 {

template <dtype_policy Policy = fp32>
struct layer_norm_forward_arguments {
    std::int64_t rows;
    std::int64_t width;
    double epsilon = 1e-5;
    storage_t<Policy> const* input;  // [rows, width]
    storage_t<Policy> const* gamma;  // [width]
    storage_t<Policy> const* beta;   // [width]
    storage_t<Policy>* output;       // [rows, width]
    compute_t<Policy>* mean;         // [rows]
    compute_t<Policy>* rstd;         // [rows]
};

template <dtype_policy Policy = fp32>
struct layer_norm_backward_input_arguments {
    std::int64_t rows;
    std::int64_t width;
    storage_t<Policy> const* input;                      // [rows, width]
    storage_t<Policy> const* gamma;                      // [width]
    compute_t<Policy> const* mean;                       // [rows]
    compute_t<Policy> const* rstd;                       // [rows]
    storage_t<Policy> const* output_gradient;            // [rows, width]
    storage_t<Policy> const* bypass_gradient = nullptr;  // [rows, width], added to the result, or null
    storage_t<Policy>* input_gradient;                   // [rows, width], may be either gradient above
};

template <dtype_policy Policy = fp32>
struct layer_norm_backward_weight_arguments {
    std::int64_t rows;
    std::int64_t width;
    storage_t<Policy> const* input;            // [rows, width]
    compute_t<Policy> const* mean;             // [rows]
    compute_t<Policy> const* rstd;             // [rows]
    storage_t<Policy> const* output_gradient;  // [rows, width]
    gradient_sum<Policy> gamma_gradient;       // [width]; left out when sums is null
    gradient_sum<Policy> beta_gradient;        // [width]; left out when sums is null
};

namespace definition {

template <dtype_policy Policy>
void layer_norm_forward(layer_norm_forward_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    for (std::int64_t r = 0; r < a.rows; ++r) {
        auto const* x = a.input + r * a.width;
        compute sum = 0;
        for (std::int64_t c = 0; c < a.width; ++c) {
            sum += compute(x[c]);
        }
        compute const mean = sum / static_cast<compute>(a.width);
        compute squares = 0;
        for (std::int64_t c = 0; c < a.width; ++c) {
            squares += (compute(x[c]) - mean) * (compute(x[c]) - mean);
        }
        compute const rstd = compute(1) / std::sqrt(squares / static_cast<compute>(a.width) + static_cast<compute>(a.epsilon));
        for (std::int64_t c = 0; c < a.width; ++c) {
            a.output[r * a.width + c] = static_cast<storage_t<Policy>>((compute(x[c]) - mean) * rstd * compute(a.gamma[c]) + compute(a.beta[c]));
        }
        a.mean[r] = mean;
        a.rstd[r] = rstd;
    }
}

template <dtype_policy Policy>
void layer_norm_backward_input(layer_norm_backward_input_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    using storage = storage_t<Policy>;
    for (std::int64_t r = 0; r < a.rows; ++r) {
        auto const* x = a.input + r * a.width;
        auto const* dy = a.output_gradient + r * a.width;
        compute sum = 0;        // of gamma dy
        compute projected = 0;  // of gamma dy x^
        for (std::int64_t c = 0; c < a.width; ++c) {
            compute const normal = (compute(x[c]) - a.mean[r]) * a.rstd[r];
            sum += compute(a.gamma[c]) * compute(dy[c]);
            projected += compute(a.gamma[c]) * compute(dy[c]) * normal;
        }
        sum /= static_cast<compute>(a.width);
        projected /= static_cast<compute>(a.width);
        for (std::int64_t c = 0; c < a.width; ++c) {
            compute const normal = (compute(x[c]) - a.mean[r]) * a.rstd[r];
            auto dx = static_cast<storage>((compute(a.gamma[c]) * compute(dy[c]) - sum - normal * projected) * a.rstd[r]);
            if (a.bypass_gradient != nullptr) {
                dx = static_cast<storage>(compute(dx) + compute(a.bypass_gradient[r * a.width + c]));
            }
            a.input_gradient[r * a.width + c] = dx;
        }
    }
}

template <dtype_policy Policy>
void layer_norm_backward_weight(layer_norm_backward_weight_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    for (std::int64_t c = 0; c < a.width; ++c) {
        compute gamma = 0;
        compute beta = 0;
        for (std::int64_t r = 0; r < a.rows; ++r) {
            compute const dy = compute(a.output_gradient[r * a.width + c]);
            gamma += dy * ((compute(a.input[r * a.width + c]) - a.mean[r]) * a.rstd[r]);
            beta += dy;
        }
        if (a.gamma_gradient.sums != nullptr) {
            contribute(a.gamma_gradient, c, gamma);
        }
        if (a.beta_gradient.sums != nullptr) {
            contribute(a.beta_gradient, c, beta);
        }
    }
}

}  // namespace definition

class tile_pool;

namespace host {

void layer_norm_forward(tile_pool& pool, layer_norm_forward_arguments<> const& arguments);
void layer_norm_backward_input(tile_pool& pool, layer_norm_backward_input_arguments<> const& arguments);
void layer_norm_backward_weight(tile_pool& pool, layer_norm_backward_weight_arguments<> const& arguments);
void layer_norm_backward_weight(tile_pool& pool, layer_norm_backward_weight_arguments<fp32_i32> const& arguments);

}  // namespace host

namespace cuda {

// Policy is fp32 or bf16, of backward_weight also fp32_i32 or bf16_i32; pointers are the device's, and results are there when the stream is.
template <dtype_policy Policy>
void layer_norm_forward(stream queue, layer_norm_forward_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void layer_norm_backward_input(stream queue, layer_norm_backward_input_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void layer_norm_backward_weight(stream queue, workspace scratch, layer_norm_backward_weight_arguments<Policy> const& arguments);

/// backward_input and backward_weight in one launch, with their bits; sums that are null are left out. The workspace is backward_weight's.
/// @pre input_gradient is not output_gradient
template <dtype_policy Policy>
void layer_norm_backward(stream queue, workspace scratch, layer_norm_backward_input_arguments<Policy> const& arguments,
                         gradient_sum<Policy> const& gamma_gradient, gradient_sum<Policy> const& beta_gradient);

/// Bytes of workspace that layer_norm_backward_weight wants.
std::int64_t layer_norm_backward_weight_workspace_bytes(std::int64_t rows, std::int64_t width);

}  // namespace cuda
}  // namespace rheo::inline v0
