// SPDX-License-Identifier: Apache-2.0
#include "kernels/residual_norm/residual_norm.hpp"

#include "kernels/cuda/policy.hpp"
#include "kernels/dropout/dropout.cuh"
#include "kernels/layer_norm/layer_norm.cuh"

namespace rheo::inline v0::cuda {

namespace {

template <class T, bool Whole, int Most>
__global__ void __launch_bounds__(Most) forward(residual_norm_forward_arguments<policy_storing<T>> a, drop_rule rule)
{
    row_place const place{a.rows, a.width};
    chunk<T> sum[items_per_thread];
    chunk<T> branch[items_per_thread];
    load_striped<Whole>(sum, a.stream + place.first, place);
    load_striped<Whole>(branch, a.branch + place.first, place);
    drop_mask<T> const mask{rule, place};
    for (int k = 0; k < items_per_thread; ++k) {
        sum[k] = residual_of(sum[k], branch[k], mask, k);
    }
    store_striped<Whole>(a.residual + place.first, place, sum);
    layer_norm_of_row<Whole, T>(sum, place, a);
}

template <class T, bool Whole>
__device__ void input_gradients(row_place const& place, residual_norm_backward_arguments<policy_storing<T>> const& a, drop_rule const& rule)
{
    chunk<T> x[items_per_thread];
    load_striped<Whole>(x, a.residual + place.first, place);
    layer_norm_gradient_of_row<Whole, T>(x, place, a);
    store_striped<Whole>(a.stream_gradient + place.first, place, x);
    drop_mask<T> const mask{rule, place};
    for (int k = 0; k < items_per_thread; ++k) {
        x[k] = dropped_of(x[k], mask, k);
    }
    store_striped<Whole>(a.branch_gradient + place.first, place, x);
}

template <class T, bool Whole, int Most>
__global__ void __launch_bounds__(Most) backward(residual_norm_backward_arguments<policy_storing<T>> a, drop_rule rule)
{
    input_gradients<T, Whole>(row_place{a.rows, a.width}, a, rule);
}

template <class T, bool Whole, int Most>
__global__ void __launch_bounds__(Most) backward_with_weights(residual_norm_backward_arguments<policy_storing<T>> a, drop_rule rule,
                                                              gradient_sum_of<dtype::i64> gamma, gradient_sum_of<dtype::i64> beta, workspace scratch)
{
    rows_and_columns<T>(
        a.width, [&](column_place at) { layer_norm_weight_gradients<Whole, T>(layer_norm_weight_part(a, a.residual, gamma, beta), scratch, at); },
        [&](std::int64_t first) { input_gradients<T, Whole>(row_place{a.rows, a.width, first}, a, rule); });
}

}  // namespace

template <dtype_policy Policy>
void residual_norm_forward(stream queue, residual_norm_forward_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    auto const shape = shape_of_rows<T>(a.rows, a.width, layer_norm_sums);
    choose_row(whole_chunks<T>(a.width, a.stream, a.branch, a.gamma, a.beta, a.residual, a.output), shape,
               [&](auto whole, auto most) { launch(queue, shape, forward<T, whole(), most()>, a, rule_of(a.drop)); });
}

template <dtype_policy Policy>
void residual_norm_backward(stream queue, residual_norm_backward_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    auto const shape = shape_of_rows<T>(a.rows, a.width, layer_norm_sums);
    choose_row(whole_chunks<T>(a.width, a.residual, a.gamma, a.output_gradient, a.bypass_gradient, a.stream_gradient, a.branch_gradient), shape,
               [&](auto whole, auto most) { launch(queue, shape, backward<T, whole(), most()>, a, rule_of(a.drop)); });
}

template <dtype_policy Policy>
void residual_norm_backward(stream queue, workspace scratch, residual_norm_backward_arguments<Policy> const& a, gradient_sum<Policy> const& gamma,
                            gradient_sum<Policy> const& beta)
{
    using T = storage_t<Policy>;
    if (gamma.sums == nullptr && beta.sums == nullptr) {
        residual_norm_backward(queue, a);
        return;
    }
    expects(a.stream_gradient != a.output_gradient && a.branch_gradient != a.output_gradient,
            "the backward of a norm in one launch does not write over the gradient that it reads");
    auto const shape = shape_of_rows_and_columns<T>(a.rows, a.width, layer_norm_sums, 2, scratch);
    choose_row(whole_chunks<T>(a.width, a.residual, a.gamma, a.output_gradient, a.bypass_gradient, a.stream_gradient, a.branch_gradient), shape,
               [&](auto whole, auto most) { launch(queue, shape, backward_with_weights<T, whole(), most()>, a, rule_of(a.drop), gamma, beta, scratch); });
}

template void residual_norm_forward(stream, residual_norm_forward_arguments<fp32> const&);
template void residual_norm_forward(stream, residual_norm_forward_arguments<bf16> const&);
template void residual_norm_backward(stream, residual_norm_backward_arguments<fp32> const&);
template void residual_norm_backward(stream, residual_norm_backward_arguments<bf16> const&);
template void residual_norm_backward(stream, workspace, residual_norm_backward_arguments<fp32> const&, gradient_sum<fp32> const&, gradient_sum<fp32> const&);
template void residual_norm_backward(stream, workspace, residual_norm_backward_arguments<bf16> const&, gradient_sum<bf16> const&, gradient_sum<bf16> const&);

}  // namespace rheo::inline v0::cuda
