// SPDX-License-Identifier: Apache-2.0
#include "kernels/gelu/gelu.hpp"

#include "kernels/cuda/approximate.cuh"
#include "kernels/cuda/policy.hpp"
#include "kernels/cuda/rows.cuh"

namespace rheo::inline v0::cuda {

namespace {

// With v = 2 sqrt(2/pi) (x + 0.044715 x^3) and t = v log2(e): gelu(x) = x / (1 + 2^-t), since (1 + tanh(v/2)) / 2 = 1 / (1 + e^-v).
__device__ float exponent_of(float x, float square) { return x * fmaf(0.10294324F, square, 2.3022082F); }

__device__ float gelu_of(float x) { return x * reciprocal(1.0F + power_of_two(-exponent_of(x, x * x))); }

// s + x v' s (1 - s) with s = 1 / (1 + 2^-t). Of e = 2^-|t|, which is finite, and r = 1 / (1 + e) one of s and 1 - s is r and the other e r: so neither
// is a difference.
__device__ float gelu_derivative_of(float x)
{
    float const square = x * x;
    float const e = power_of_two(-fabsf(exponent_of(x, square)));
    float const r = reciprocal(1.0F + e);
    float const rest = e * r;
    float const slope = fmaf(0.21406445F, square, 1.5957691F);
    return fmaf(x * slope, rest * r, x < 0.0F ? rest : r);
}

template <class T, bool Whole>
__global__ void __launch_bounds__(256) forward(gelu_forward_arguments<policy_storing<T>> a)
{
    chunk<T> x[items_per_thread];
    for (int k = 0; k < items_per_thread; ++k) {
        x[k] = load<Whole>(a.input, a.count, run_chunk(k));
    }
    for (int k = 0; k < items_per_thread; ++k) {
        float y[chunk_size<T>];
        for (int e = 0; e < chunk_size<T>; ++e) {
            y[e] = gelu_of(x[k].at(e));
        }
        store<Whole>(a.output, a.count, run_chunk(k), packed<T>(y));
    }
}

template <class T, bool Whole>
__global__ void __launch_bounds__(256) backward(gelu_backward_arguments<policy_storing<T>> a)
{
    chunk<T> x[items_per_thread];
    chunk<T> dy[items_per_thread];
    for (int k = 0; k < items_per_thread; ++k) {
        x[k] = load<Whole>(a.input, a.count, run_chunk(k));
        dy[k] = load<Whole>(a.output_gradient, a.count, run_chunk(k));
    }
    for (int k = 0; k < items_per_thread; ++k) {
        float dx[chunk_size<T>];
        for (int e = 0; e < chunk_size<T>; ++e) {
            dx[e] = dy[k].at(e) * gelu_derivative_of(x[k].at(e));
        }
        store<Whole>(a.input_gradient, a.count, run_chunk(k), packed<T>(dx));
    }
}

}  // namespace

template <dtype_policy Policy>
void gelu_forward(stream queue, gelu_forward_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    choose(whole_chunks<T>(a.count, a.input, a.output), [&](auto whole) { launch(queue, shape_of_run<T>(a.count), forward<T, whole()>, a); });
}

template <dtype_policy Policy>
void gelu_backward(stream queue, gelu_backward_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    choose(whole_chunks<T>(a.count, a.input, a.output_gradient, a.input_gradient),
           [&](auto whole) { launch(queue, shape_of_run<T>(a.count), backward<T, whole()>, a); });
}

template void gelu_forward(stream, gelu_forward_arguments<fp32> const&);
template void gelu_forward(stream, gelu_forward_arguments<bf16> const&);
template void gelu_backward(stream, gelu_backward_arguments<fp32> const&);
template void gelu_backward(stream, gelu_backward_arguments<bf16> const&);

}  // namespace rheo::inline v0::cuda
