// SPDX-License-Identifier: Apache-2.0
#include "kernels/rms_norm/rms_norm.hpp"

#include "kernels/cuda/policy.hpp"
#include "kernels/rms_norm/rms_norm.cuh"

namespace rheo::inline v0::cuda {

namespace {

template <class T, bool Whole, int Most>
__global__ void __launch_bounds__(Most) forward(rms_norm_forward_arguments<policy_storing<T>> a)
{
    row_place const place{a.rows, a.width};
    chunk<T> x[items_per_thread];
    load_striped<Whole>(x, a.input + place.first, place);
    rms_norm_of_row<Whole, T>(x, place, a);
}

template <class T, bool Whole>
__device__ void input_gradient(row_place const& place, rms_norm_backward_input_arguments<policy_storing<T>> const& a)
{
    chunk<T> x[items_per_thread];
    load_striped<Whole>(x, a.input + place.first, place);
    rms_norm_gradient_of_row<Whole, T>(x, place, a);
    store_striped<Whole>(a.input_gradient + place.first, place, x);
}

template <class T, bool Whole, int Most>
__global__ void __launch_bounds__(Most) backward_input(rms_norm_backward_input_arguments<policy_storing<T>> a)
{
    input_gradient<T, Whole>(row_place{a.rows, a.width}, a);
}

template <class T, class Sum, bool Whole>
__global__ void __launch_bounds__(column_threads) backward_weight(rms_norm_backward_weight_arguments<policy_of<T, Sum>> a, workspace scratch)
{
    rms_norm_weight_gradient<Whole, T>(a, scratch, place_in_grid());
}

template <class T, bool Whole, int Most>
__global__ void __launch_bounds__(Most) backward(rms_norm_backward_input_arguments<policy_storing<T>> a, gradient_sum_of<dtype::i64> gamma, workspace scratch)
{
    rows_and_columns<T>(
        a.width, [&](column_place at) { rms_norm_weight_gradient<Whole, T>(rms_norm_weight_part(a, a.input, gamma), scratch, at); },
        [&](std::int64_t first) { input_gradient<T, Whole>(row_place{a.rows, a.width, first}, a); });
}

}  // namespace

template <dtype_policy Policy>
void rms_norm_forward(stream queue, rms_norm_forward_arguments<Policy> const& a)
{
    auto const shape = shape_of_rows<storage_t<Policy>>(a.rows, a.width, 1);
    choose_row(whole_chunks<storage_t<Policy>>(a.width, a.input, a.gamma, a.output), shape,
               [&](auto whole, auto most) { launch(queue, shape, forward<storage_t<Policy>, whole(), most()>, a); });
}

template <dtype_policy Policy>
void rms_norm_backward_input(stream queue, rms_norm_backward_input_arguments<Policy> const& a)
{
    auto const shape = shape_of_rows<storage_t<Policy>>(a.rows, a.width, 1);
    choose_row(whole_chunks<storage_t<Policy>>(a.width, a.input, a.gamma, a.output_gradient, a.bypass_gradient, a.input_gradient), shape,
               [&](auto whole, auto most) { launch(queue, shape, backward_input<storage_t<Policy>, whole(), most()>, a); });
}

template <dtype_policy Policy>
void rms_norm_backward_weight(stream queue, workspace scratch, rms_norm_backward_weight_arguments<Policy> const& a)
{
    auto const shape = shape_of_columns<storage_t<Policy>>(a.rows, a.width, 1, scratch);
    choose(whole_chunks<storage_t<Policy>>(a.width, a.input, a.output_gradient),
           [&](auto whole) { launch(queue, shape, backward_weight<storage_t<Policy>, accumulate_t<Policy>, whole()>, a, scratch); });
}

template <dtype_policy Policy>
void rms_norm_backward(stream queue, workspace scratch, rms_norm_backward_input_arguments<Policy> const& a, gradient_sum<Policy> const& gamma)
{
    using T = storage_t<Policy>;
    if (gamma.sums == nullptr) {
        rms_norm_backward_input(queue, a);
        return;
    }
    expects(a.input_gradient != a.output_gradient, "the backward of a norm in one launch does not write over the gradient that it reads");
    auto const shape = shape_of_rows_and_columns<T>(a.rows, a.width, 1, 1, scratch);
    choose_row(whole_chunks<T>(a.width, a.input, a.gamma, a.output_gradient, a.bypass_gradient, a.input_gradient), shape,
               [&](auto whole, auto most) { launch(queue, shape, backward<T, whole(), most()>, a, gamma, scratch); });
}

std::int64_t rms_norm_backward_weight_workspace_bytes(std::int64_t rows, std::int64_t width) { return column_workspace_bytes(rows, width, 1); }

template void rms_norm_forward(stream, rms_norm_forward_arguments<fp32> const&);
template void rms_norm_forward(stream, rms_norm_forward_arguments<bf16> const&);
template void rms_norm_backward_input(stream, rms_norm_backward_input_arguments<fp32> const&);
template void rms_norm_backward_input(stream, rms_norm_backward_input_arguments<bf16> const&);
template void rms_norm_backward_weight(stream, workspace, rms_norm_backward_weight_arguments<fp32> const&);
template void rms_norm_backward_weight(stream, workspace, rms_norm_backward_weight_arguments<bf16> const&);
template void rms_norm_backward_weight(stream, workspace, rms_norm_backward_weight_arguments<fp32_i32> const&);
template void rms_norm_backward_weight(stream, workspace, rms_norm_backward_weight_arguments<bf16_i32> const&);
template void rms_norm_backward(stream, workspace, rms_norm_backward_input_arguments<fp32> const&, gradient_sum<fp32> const&);
template void rms_norm_backward(stream, workspace, rms_norm_backward_input_arguments<bf16> const&, gradient_sum<bf16> const&);

}  // namespace rheo::inline v0::cuda
