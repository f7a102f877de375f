#pragma once
// SPDX-License-Identifier: Apache-2.0

// residual_add and rms_norm in one pass over the row, as residual_norm is with layer_norm: it stores the sum as well as its norm and
// rounds where residual_add would have stored, so fused and unfused give the same bits. The weight's gradient is that of
// rms_norm with the sum as its input.

#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "kernels/residual_add/residual_add.hpp"
#include "kernels/rms_norm/rms_norm.hpp"

namespace rheo::inline v0 {

template <dtype_policy Policy = fp32>
struct residual_rms_norm_forward_arguments {
    std::int64_t rows;
    std::int64_t width;
    double epsilon = 1e-5;
    storage_t<Policy> const* stream;  // [rows, width]
    storage_t<Policy> const* branch;  // [rows, width]
    dropout drop{};                   ///< of the branch
    storage_t<Policy> const* gamma;   // [width]
    storage_t<Policy>* residual;      // [rows, width], the sum; may be stream or branch
    storage_t<Policy>* output;        // [rows, width]
    compute_t<Policy>* rstd;          // [rows]
};

template <dtype_policy Policy = fp32>
struct residual_rms_norm_backward_arguments {
    std::int64_t rows;
    std::int64_t width;
    storage_t<Policy> const* residual;                   // [rows, width], of forward
    storage_t<Policy> const* gamma;                      // [width]
    compute_t<Policy> const* rstd;                       // [rows]
    storage_t<Policy> const* output_gradient;            // [rows, width]
    storage_t<Policy> const* bypass_gradient = nullptr;  // [rows, width], of the sum as later operations use it, or null
    dropout drop{};
    storage_t<Policy>* stream_gradient;  // [rows, width], may be either gradient above
    storage_t<Policy>* branch_gradient;  // [rows, width], not one of the others
};

namespace definition {

template <dtype_policy Policy>
void residual_rms_norm_forward(residual_rms_norm_forward_arguments<Policy> const& a)
{
    residual_add_forward(
        residual_add_forward_arguments<Policy>{.rows = a.rows, .width = a.width, .stream = a.stream, .branch = a.branch, .drop = a.drop, .output = a.residual});
    rms_norm_forward(rms_norm_forward_arguments<Policy>{
        .rows = a.rows, .width = a.width, .epsilon = a.epsilon, .input = a.residual, .gamma = a.gamma, .output = a.output, .rstd = a.rstd});
}

template <dtype_policy Policy>
void residual_rms_norm_backward(residual_rms_norm_backward_arguments<Policy> const& a)
{
    rms_norm_backward_input(rms_norm_backward_input_arguments<Policy>{.rows = a.rows,
                                                                      .width = a.width,
                                                                      .input = a.residual,
                                                                      .gamma = a.gamma,
                                                                      .rstd = a.rstd,
                                                                      .output_gradient = a.output_gradient,
                                                                      .bypass_gradient = a.bypass_gradient,
                                                                      .input_gradient = a.stream_gradient});
    residual_add_backward(residual_add_backward_arguments<Policy>{
        .rows = a.rows, .width = a.width, .output_gradient = a.stream_gradient, .drop = a.drop, .branch_gradient = a.branch_gradient});
}

}  // namespace definition

class tile_pool;

namespace host {

void residual_rms_norm_forward(tile_pool& pool, residual_rms_norm_forward_arguments<> const& arguments);
void residual_rms_norm_backward(tile_pool& pool, residual_rms_norm_backward_arguments<> const& arguments);

}  // namespace host

namespace cuda {

// Policy is fp32 or bf16; pointers are the device's, and results are there when the stream is.
template <dtype_policy Policy>
void residual_rms_norm_forward(stream queue, residual_rms_norm_forward_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void residual_rms_norm_backward(stream queue, residual_rms_norm_backward_arguments<Policy> const& arguments);
/// The same with the weight's gradient in one launch, as rms_norm_backward has it. @pre no gradient written is output_gradient
template <dtype_policy Policy>
void residual_rms_norm_backward(stream queue, workspace scratch, residual_rms_norm_backward_arguments<Policy> const& arguments,
                                gradient_sum<Policy> const& gamma_gradient);

}  // namespace cuda
}  // namespace rheo::inline v0
