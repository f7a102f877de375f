#pragma once
// SPDX-License-Identifier: Apache-2.0

// The gated unit of Llama's MLP (Shazeer: "GLU variants improve transformer", 2020): a row of the input is a gate g and, beside
// it, a value u; y = g s(g) u with s(g) = 1 / (1 + e^-g). Backward reads the input, not the output.

#include <cmath>
#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "rheo/tensor/dtype.hpp"

namespace rheo::inline v0 {

template <dtype_policy Policy = fp32>
struct swiglu_forward_arguments {
    std::int64_t rows;
    std::int64_t width;              ///< of the output; the input is twice as wide
    storage_t<Policy> const* input;  // [rows, 2 * width]
    storage_t<Policy>* output;       // [rows, width]
};

template <dtype_policy Policy = fp32>
struct swiglu_backward_arguments {
    std::int64_t rows;
    std::int64_t width;
    storage_t<Policy> const* input;            // [rows, 2 * width]
    storage_t<Policy> const* output_gradient;  // [rows, width]
    storage_t<Policy>* input_gradient;         // [rows, 2 * width]
};

namespace definition {

template <dtype_policy Policy>
void swiglu_forward(swiglu_forward_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    for (std::int64_t r = 0; r < a.rows; ++r) {
        for (std::int64_t c = 0; c < a.width; ++c) {
            compute const g = compute(a.input[r * 2 * a.width + c]);
            compute const u = compute(a.input[r * 2 * a.width + a.width + c]);
            a.output[r * a.width + c] = static_cast<storage_t<Policy>>(g / (compute(1) + std::exp(-g)) * u);
        }
    }
}

template <dtype_policy Policy>
void swiglu_backward(swiglu_backward_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    using storage = storage_t<Policy>;
    for (std::int64_t r = 0; r < a.rows; ++r) {
        for (std::int64_t c = 0; c < a.width; ++c) {
            compute const g = compute(a.input[r * 2 * a.width + c]);
            compute const u = compute(a.input[r * 2 * a.width + a.width + c]);
            compute const s = compute(1) / (compute(1) + std::exp(-g));
            compute const dy = compute(a.output_gradient[r * a.width + c]);
            a.input_gradient[r * 2 * a.width + c] = static_cast<storage>(dy * u * (s + g * s * (compute(1) - s)));
            a.input_gradient[r * 2 * a.width + a.width + c] = static_cast<storage>(dy * (g * s));
        }
    }
}

}  // namespace definition

class tile_pool;

namespace host {

void swiglu_forward(tile_pool& pool, swiglu_forward_arguments<> const& arguments);
void swiglu_backward(tile_pool& pool, swiglu_backward_arguments<> const& arguments);

}  // namespace host

namespace cuda {

// Policy is fp32 or bf16; pointers are the device's, and results are there when the stream is.
template <dtype_policy Policy>
void swiglu_forward(stream queue, swiglu_forward_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void swiglu_backward(stream queue, swiglu_backward_arguments<Policy> const& arguments);

}  // namespace cuda
}  // namespace rheo::inline v0
