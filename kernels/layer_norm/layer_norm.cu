// SPDX-License-Identifier: Apache-2.0
#include "kernels/layer_norm/layer_norm.hpp"

#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/policy.hpp"
#include "kernels/layer_norm/layer_norm.cuh"

namespace rheo::inline v0::cuda {

namespace {

template <class T, bool Whole, int Most>
__global__ void __launch_bounds__(Most) forward(layer_norm_forward_arguments<policy_storing<T>> a)
{
    row_place const place{a.rows, a.width};
    chunk<T> x[kept_chunks];
    load_kept<Whole>(x, a.input + place.first, place);
    layer_norm_of_kept<Whole, T>(x, place, a);
}

template <class T, bool Whole, int Most>
__global__ void __launch_bounds__(Most) backward_input(layer_norm_backward_input_arguments<policy_storing<T>> a)
{
    row_place const place{a.rows, a.width};
    chunk<T> x[kept_chunks];
    load_kept<Whole>(x, a.input + place.first, place);
    layer_norm_gradient_of_kept<Whole, T>(x, place, a);
    store_kept<Whole>(a.input_gradient + place.first, place, x);
}

template <class T>
struct weight_item {
    chunk<T> x;
    chunk<T> dy;
    float mean;
    float rstd;
};

template <class T, bool Whole>
__global__ void __launch_bounds__(column_threads) backward_weight(layer_norm_backward_weight_arguments<policy_storing<T>> a, workspace room)
{
    exact_adder gamma{a.gamma_gradient};
    exact_adder beta{a.beta_gradient};
    column_sums<2, T>(
        a.width, room,
        [&](std::int64_t row, std::int64_t chunk) {
            std::int64_t const width = row < a.rows ? a.width : 0;
            return weight_item<T>{.x = load<Whole>(a.input + row * a.width, width, chunk),
                                  .dy = load<Whole>(a.output_gradient + row * a.width, width, chunk),
                                  .mean = width > 0 ? a.mean[row] : 0,
                                  .rstd = width > 0 ? a.rstd[row] : 0};
        },
        [&](weight_item<T> const& item, float (&sums)[2][chunk_size<T>]) {
            for (int e = 0; e < chunk_size<T>; ++e) {
                sums[0][e] = fmaf(item.dy.at(e), (item.x.at(e) - item.mean) * item.rstd, sums[0][e]);
                sums[1][e] += item.dy.at(e);
            }
        },
        [&](int value, std::int64_t column, float sum) { value == 0 ? gamma.add(column, sum) : beta.add(column, sum); },
        [&] {
            gamma.merge();
            beta.merge();
        });
}

}  // namespace

template <dtype_policy Policy>
void layer_norm_forward(stream queue, layer_norm_forward_arguments<Policy> const& a)
{
    auto const shape = shape_of_rows<storage_t<Policy>>(a.rows, a.width, layer_norm_sums);
    choose_row(whole_chunks<storage_t<Policy>>(a.width, a.input, a.gamma, a.beta, a.output), shape,
               [&](auto whole, auto most) { launch(queue, shape, forward<storage_t<Policy>, whole(), most()>, a); });
}

template <dtype_policy Policy>
void layer_norm_backward_input(stream queue, layer_norm_backward_input_arguments<Policy> const& a)
{
    auto const shape = shape_of_rows<storage_t<Policy>>(a.rows, a.width, layer_norm_sums);
    choose_row(whole_chunks<storage_t<Policy>>(a.width, a.input, a.gamma, a.output_gradient, a.bypass_gradient, a.input_gradient), shape,
               [&](auto whole, auto most) { launch(queue, shape, backward_input<storage_t<Policy>, whole(), most()>, a); });
}

template <dtype_policy Policy>
void layer_norm_backward_weight(stream queue, workspace room, layer_norm_backward_weight_arguments<Policy> const& a)
{
    auto const shape = shape_of_columns<storage_t<Policy>>(a.rows, a.width, 2, room);
    choose(whole_chunks<storage_t<Policy>>(a.width, a.input, a.output_gradient),
           [&](auto whole) { launch(queue, shape, backward_weight<storage_t<Policy>, whole()>, a, room); });
}

std::int64_t layer_norm_backward_weight_room(std::int64_t rows, std::int64_t width) { return column_workspace(rows, width, 2); }

template void layer_norm_forward(stream, layer_norm_forward_arguments<fp32> const&);
template void layer_norm_forward(stream, layer_norm_forward_arguments<bf16> const&);
template void layer_norm_backward_input(stream, layer_norm_backward_input_arguments<fp32> const&);
template void layer_norm_backward_input(stream, layer_norm_backward_input_arguments<bf16> const&);
template void layer_norm_backward_weight(stream, workspace, layer_norm_backward_weight_arguments<fp32> const&);
template void layer_norm_backward_weight(stream, workspace, layer_norm_backward_weight_arguments<bf16> const&);

}  // namespace rheo::inline v0::cuda
