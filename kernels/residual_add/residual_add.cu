// SPDX-License-Identifier: Apache-2.0
#include "kernels/residual_add/residual_add.hpp"

#include "kernels/cuda/policy.hpp"
#include "kernels/dropout/dropout.cuh"

namespace rheo::inline v0::cuda {

namespace {

template <class T, bool Whole>
__global__ void __launch_bounds__(256) forward(residual_add_forward_arguments<policy_storing<T>> a, drop_rule rule)
{
    row_place const place{a.rows, a.width};
    chunk<T> stream[items_per_thread];
    chunk<T> branch[items_per_thread];
    load_striped<Whole>(stream, a.stream + place.first, place);
    load_striped<Whole>(branch, a.branch + place.first, place);
    drop_mask<T> const mask{rule, place};
    for (int k = 0; k < items_per_thread; ++k) {
        stream[k] = residual_of(stream[k], branch[k], mask, k);
    }
    store_striped<Whole>(a.output + place.first, place, stream);
}

template <class T, bool Whole>
__global__ void __launch_bounds__(256) backward(residual_add_backward_arguments<policy_storing<T>> a, drop_rule rule)
{
    row_place const place{a.rows, a.width};
    chunk<T> gradient[items_per_thread];
    load_striped<Whole>(gradient, a.output_gradient + place.first, place);
    drop_mask<T> const mask{rule, place};
    for (int k = 0; k < items_per_thread; ++k) {
        gradient[k] = dropped_of(gradient[k], mask, k);
    }
    store_striped<Whole>(a.branch_gradient + place.first, place, gradient);
}

}  // namespace

template <dtype_policy Policy>
void residual_add_forward(stream queue, residual_add_forward_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    choose(whole_chunks<T>(a.width, a.stream, a.branch, a.output),
           [&](auto whole) { launch(queue, shape_of_tiles<T>(a.rows, a.width), forward<T, whole()>, a, rule_of(a.drop)); });
}

template <dtype_policy Policy>
void residual_add_backward(stream queue, residual_add_backward_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    auto const rule = rule_of(a.drop);
    if (rule.threshold == 0 && a.branch_gradient == a.output_gradient) {
        return;
    }
    choose(whole_chunks<T>(a.width, a.output_gradient, a.branch_gradient),
           [&](auto whole) { launch(queue, shape_of_tiles<T>(a.rows, a.width), backward<T, whole()>, a, rule); });
}

template void residual_add_forward(stream, residual_add_forward_arguments<fp32> const&);
template void residual_add_forward(stream, residual_add_forward_arguments<bf16> const&);
template void residual_add_backward(stream, residual_add_backward_arguments<fp32> const&);
template void residual_add_backward(stream, residual_add_backward_arguments<bf16> const&);

}  // namespace rheo::inline v0::cuda
