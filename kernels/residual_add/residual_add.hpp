#pragma once
// SPDX-License-Identifier: Apache-2.0

// A branch joins the residual stream: r = stream + dropout(branch). Element (row, c) of the microbatch
// draws with index row * width + c, also where the rows are those of a slice. The gradient of the stream is the gradient of r itself, so backward
// computes only the branch's.

#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "kernels/dropout/dropout.hpp"
#include "rheo/tensor/dtype.hpp"

namespace rheo::inline v0 {

template <dtype_policy Policy = fp32>
struct residual_add_forward_arguments {
    std::int64_t rows;
    std::int64_t width;
    storage_t<Policy> const* stream;  // [rows, width]
    storage_t<Policy> const* branch;  // [rows, width]
    dropout drop{};
    storage_t<Policy>* output;  // [rows, width], may be either input
};

template <dtype_policy Policy = fp32>
struct residual_add_backward_arguments {
    std::int64_t rows;
    std::int64_t width;
    storage_t<Policy> const* output_gradient;  // [rows, width], which is also the stream's gradient
    dropout drop{};
    storage_t<Policy>* branch_gradient;  // [rows, width], may be output_gradient
};

namespace definition {

template <dtype_policy Policy>
void residual_add_forward(residual_add_forward_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    dropout_factor<compute> const factor{a.drop};
    for (std::int64_t i = 0; i < a.rows * a.width; ++i) {
        auto const kept = static_cast<storage_t<Policy>>(compute(a.branch[i]) * factor.at(i / a.width, i % a.width, a.width));
        a.output[i] = static_cast<storage_t<Policy>>(compute(a.stream[i]) + compute(kept));
    }
}

template <dtype_policy Policy>
void residual_add_backward(residual_add_backward_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    dropout_factor<compute> const factor{a.drop};
    for (std::int64_t i = 0; i < a.rows * a.width; ++i) {
        a.branch_gradient[i] = static_cast<storage_t<Policy>>(compute(a.output_gradient[i]) * factor.at(i / a.width, i % a.width, a.width));
    }
}

}  // namespace definition

class tile_pool;

namespace host {

void residual_add_forward(tile_pool& pool, residual_add_forward_arguments<> const& arguments);
void residual_add_backward(tile_pool& pool, residual_add_backward_arguments<> const& arguments);

}  // namespace host

namespace cuda {

// Policy is fp32 or bf16; pointers are the device's, and results are there when the stream is.
template <dtype_policy Policy>
void residual_add_forward(stream queue, residual_add_forward_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void residual_add_backward(stream queue, residual_add_backward_arguments<Policy> const& arguments);

}  // namespace cuda
}  // namespace rheo::inline v0
