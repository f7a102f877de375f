// SPDX-License-Identifier: Apache-2.0
#include "kernels/swiglu/swiglu.hpp"

#include "kernels/cuda/policy.hpp"
#include "kernels/cuda/rows.cuh"

namespace rheo::inline v0::cuda {

namespace {

template <class T, bool Whole>
__global__ void __launch_bounds__(256) forward(swiglu_forward_arguments<policy_storing<T>> a)
{
    row_place const place{a.rows, a.width};
    chunk<T> gate[items_per_thread];
    chunk<T> value[items_per_thread];
    load_striped<Whole>(gate, a.input + 2 * place.first, place);
    load_striped<Whole>(value, a.input + 2 * place.first + place.width, place);
    for (int k = 0; k < items_per_thread; ++k) {
        float y[chunk_size<T>];
        for (int e = 0; e < chunk_size<T>; ++e) {
            float const g = gate[k].at(e);
            y[e] = g / (1.0F + expf(-g)) * value[k].at(e);
        }
        store<Whole>(a.output + place.first, place.width, place.chunk(k), packed<T>(y));
    }
}

template <class T, bool Whole>
__global__ void __launch_bounds__(256) backward(swiglu_backward_arguments<policy_storing<T>> a)
{
    row_place const place{a.rows, a.width};
    chunk<T> gate[items_per_thread];
    chunk<T> value[items_per_thread];
    chunk<T> dy[items_per_thread];
    load_striped<Whole>(gate, a.input + 2 * place.first, place);
    load_striped<Whole>(value, a.input + 2 * place.first + place.width, place);
    load_striped<Whole>(dy, a.output_gradient + place.first, place);
    for (int k = 0; k < items_per_thread; ++k) {
        float to_gate[chunk_size<T>];
        float to_value[chunk_size<T>];
        for (int e = 0; e < chunk_size<T>; ++e) {
            float const g = gate[k].at(e);
            float const exponential = expf(-g);
            float const s = 1.0F / (1.0F + exponential);
            // s (1 - s) = e s^2, in an order in which e s <= 1 is formed first; e is infinite where the product is zero
            float const steepness = exponential < 3e38F ? exponential * s * s : 0.0F;
            to_gate[e] = dy[k].at(e) * value[k].at(e) * fmaf(g, steepness, s);
            to_value[e] = dy[k].at(e) * (g * s);
        }
        store<Whole>(a.input_gradient + 2 * place.first, place.width, place.chunk(k), packed<T>(to_gate));
        store<Whole>(a.input_gradient + 2 * place.first + place.width, place.width, place.chunk(k), packed<T>(to_value));
    }
}

}  // namespace

template <dtype_policy Policy>
void swiglu_forward(stream queue, swiglu_forward_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    choose(whole_chunks<T>(a.width, a.input, a.output), [&](auto whole) { launch(queue, shape_of_tiles<T>(a.rows, a.width), forward<T, whole()>, a); });
}

template <dtype_policy Policy>
void swiglu_backward(stream queue, swiglu_backward_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    choose(whole_chunks<T>(a.width, a.input, a.output_gradient, a.input_gradient),
           [&](auto whole) { launch(queue, shape_of_tiles<T>(a.rows, a.width), backward<T, whole()>, a); });
}

template void swiglu_forward(stream, swiglu_forward_arguments<fp32> const&);
template void swiglu_forward(stream, swiglu_forward_arguments<bf16> const&);
template void swiglu_backward(stream, swiglu_backward_arguments<fp32> const&);
template void swiglu_backward(stream, swiglu_backward_arguments<bf16> const&);

}  // namespace rheo::inline v0::cuda
