#pragma once
// SPDX-License-Identifier: Apache-2.0

// residual_add and layer_norm in one pass over the row: r = stream + dropout(branch), y = norm(r). It
// stores r as well as y and rounds r where residual_add would have stored it, so fused and unfused give
// the same bits. The weights' gradients are those of layer_norm with input r.

#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/residual_add/residual_add.hpp"

namespace rheo::inline v0 {

template <dtype_policy Policy = fp32>
struct residual_norm_forward_arguments {
    std::int64_t rows;
    std::int64_t width;
    double epsilon = 1e-5;
    storage_t<Policy> const* stream;  // [rows, width]
    storage_t<Policy> const* branch;  // [rows, width]
    dropout drop{};                   ///< of the branch
    storage_t<Policy> const* gamma;   // [width]
    storage_t<Policy> const* beta;    // [width]
    storage_t<Policy>* residual;      // [rows, width], r; may be stream or branch
    storage_t<Policy>* output;        // [rows, width], y
    compute_t<Policy>* mean;          // [rows]
    compute_t<Policy>* rstd;          // [rows]
};

template <dtype_policy Policy = fp32>
struct residual_norm_backward_arguments {
    std::int64_t rows;
    std::int64_t width;
    storage_t<Policy> const* residual;                   // [rows, width], r of forward
    storage_t<Policy> const* gamma;                      // [width]
    compute_t<Policy> const* mean;                       // [rows]
    compute_t<Policy> const* rstd;                       // [rows]
    storage_t<Policy> const* output_gradient;            // [rows, width], of y
    storage_t<Policy> const* bypass_gradient = nullptr;  // [rows, width], of r as later operations use it, or null
    dropout drop{};
    storage_t<Policy>* stream_gradient;  // [rows, width], may be either gradient above
    storage_t<Policy>* branch_gradient;  // [rows, width], not one of the others
};

namespace definition {

template <dtype_policy Policy>
void residual_norm_forward(residual_norm_forward_arguments<Policy> const& a)
{
    residual_add_forward(
        residual_add_forward_arguments<Policy>{.rows = a.rows, .width = a.width, .stream = a.stream, .branch = a.branch, .drop = a.drop, .output = a.residual});
    layer_norm_forward(layer_norm_forward_arguments<Policy>{.rows = a.rows,
                                                            .width = a.width,
                                                            .epsilon = a.epsilon,
                                                            .input = a.residual,
                                                            .gamma = a.gamma,
                                                            .beta = a.beta,
                                                            .output = a.output,
                                                            .mean = a.mean,
                                                            .rstd = a.rstd});
}

template <dtype_policy Policy>
void residual_norm_backward(residual_norm_backward_arguments<Policy> const& a)
{
    layer_norm_backward_input(layer_norm_backward_input_arguments<Policy>{.rows = a.rows,
                                                                          .width = a.width,
                                                                          .input = a.residual,
                                                                          .gamma = a.gamma,
                                                                          .mean = a.mean,
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

void residual_norm_forward(tile_pool& pool, residual_norm_forward_arguments<> const& arguments);
void residual_norm_backward(tile_pool& pool, residual_norm_backward_arguments<> const& arguments);

}  // namespace host

namespace cuda {

// Policy is fp32 or bf16; pointers are the device's, and results are there when the stream is.
template <dtype_policy Policy>
void residual_norm_forward(stream queue, residual_norm_forward_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void residual_norm_backward(stream queue, residual_norm_backward_arguments<Policy> const& arguments);
/// The same with the weights' gradients in one launch, as layer_norm_backward has them. @pre no gradient written is output_gradient
template <dtype_policy Policy>
void residual_norm_backward(stream queue, workspace scratch, residual_norm_backward_arguments<Policy> const& arguments,
                            gradient_sum<Policy> const& gamma_gradient, gradient_sum<Policy> const& beta_gradient);

}  // namespace cuda
}  // namespace rheo::inline v0
