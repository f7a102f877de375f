#pragma once
// SPDX-License-Identifier: Apache-2.0

// GELU in the tanh form of GPT-2 (Hendrycks, Gimpel: "Gaussian error linear units", 2016):
// gelu(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). Alone here; after a product it is an epilogue
// of kernels/linear. Backward reads the input, not the output.

#include <cmath>
#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "rheo/tensor/dtype.hpp"

namespace rheo::inline v0 {

template <dtype_policy Policy = fp32>
struct gelu_forward_arguments {
    std::int64_t count;
    storage_t<Policy> const* input;  // [count]
    storage_t<Policy>* output;       // [count], may be input
};

template <dtype_policy Policy = fp32>
struct gelu_backward_arguments {
    std::int64_t count;
    storage_t<Policy> const* input;            // [count]
    storage_t<Policy> const* output_gradient;  // [count]
    storage_t<Policy>* input_gradient;         // [count], may be output_gradient
};

namespace definition {

template <class Compute>
Compute gelu(Compute x)
{
    Compute const inner = Compute(0.7978845608028654) * (x + Compute(0.044715) * x * x * x);
    return Compute(0.5) * x * (Compute(1) + std::tanh(inner));
}

template <class Compute>
Compute gelu_derivative(Compute x)
{
    Compute const inner = Compute(0.7978845608028654) * (x + Compute(0.044715) * x * x * x);
    Compute const inner_derivative = Compute(0.7978845608028654) * (Compute(1) + Compute(3 * 0.044715) * x * x);
    Compute const t = std::tanh(inner);
    return Compute(0.5) * (Compute(1) + t) + Compute(0.5) * x * (Compute(1) - t * t) * inner_derivative;
}

template <dtype_policy Policy>
void gelu_forward(gelu_forward_arguments<Policy> const& a)
{
    for (std::int64_t i = 0; i < a.count; ++i) {
        a.output[i] = static_cast<storage_t<Policy>>(gelu(compute_t<Policy>(a.input[i])));
    }
}

template <dtype_policy Policy>
void gelu_backward(gelu_backward_arguments<Policy> const& a)
{
    for (std::int64_t i = 0; i < a.count; ++i) {
        a.input_gradient[i] = static_cast<storage_t<Policy>>(compute_t<Policy>(a.output_gradient[i]) * gelu_derivative(compute_t<Policy>(a.input[i])));
    }
}

}  // namespace definition

class tile_pool;

namespace host {

void gelu_forward(tile_pool& pool, gelu_forward_arguments<> const& arguments);
void gelu_backward(tile_pool& pool, gelu_backward_arguments<> const& arguments);

}  // namespace host

namespace cuda {

// Policy is fp32 or bf16; pointers are the device's, and results are there when the stream is.
template <dtype_policy Policy>
void gelu_forward(stream queue, gelu_forward_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void gelu_backward(stream queue, gelu_backward_arguments<Policy> const& arguments);

}  // namespace cuda
}  // namespace rheo::inline v0
