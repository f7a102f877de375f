// SPDX-License-Identifier: Apache-2.0
// Products by cuBLASLt, with the bias in their epilogue. The GELU that may follow reads what was stored, so that it has the bits of its own
// operation; a weight gradient is a product in float, and one pass adds it to the exact sums.
#include "kernels/linear/linear.hpp"

#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/policy.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/exact/exact.hpp"
#include "kernels/gelu/gelu.hpp"

namespace rheo::inline v0::cuda {

namespace {

template <class T, bool Whole>
__global__ void __launch_bounds__(column_threads) backward_bias(linear_backward_bias_arguments<policy_storing<T>> a, workspace room)
{
    exact_adder adder{a.bias_gradient};
    column_sums<1, T>(
        a.out, room,
        [&](std::int64_t row, std::int64_t index) { return load<Whole>(a.output_gradient + row * a.out, row < a.rows ? a.out : 0, index); },
        [&](chunk<T> const& dy, float (&sums)[1][chunk_size<T>]) {
            for (int e = 0; e < chunk_size<T>; ++e) {
                sums[0][e] += dy.at(e);
            }
        },
        [&](int, std::int64_t column, float sum) { adder.add(column, sum); }, [&] { adder.merge(); });
}

/// Where the float gradient of a weight lies in the workspace: behind the counters and what a product wants.
float* product_of(workspace room) { return reinterpret_cast<float*>(static_cast<std::byte*>(room.memory) + workspace::counter_bytes + products::room_bytes); }

}  // namespace

template <dtype_policy Policy>
void linear_forward(stream queue, workspace room, products& by, linear_forward_arguments<Policy> const& a)
{
    by.multiply(queue, room,
                product_shape{.rows = a.rows, .columns = a.out, .terms = a.in, .right_transposed = a.order == weight_order::out_in, .element = Policy.storage,
                              .result = Policy.storage, .has_bias = a.bias != nullptr},
                product_operands{.left = a.input, .right = a.weight, .bias = a.bias, .result = a.output});
    if (a.activated != nullptr) {
        gelu_forward<Policy>(queue, {.count = a.rows * a.out, .input = a.output, .output = a.activated});
    }
}

template <dtype_policy Policy>
void linear_backward_input(stream queue, workspace room, products& by, linear_backward_input_arguments<Policy> const& a)
{
    by.multiply(queue, room,
                product_shape{.rows = a.rows, .columns = a.in, .terms = a.out, .right_transposed = a.order == weight_order::in_out, .element = Policy.storage,
                              .result = Policy.storage, .adds = a.accumulate},
                product_operands{.left = a.output_gradient, .right = a.weight, .result = a.input_gradient});
}

std::int64_t linear_backward_weight_room(std::int64_t in, std::int64_t out) { return workspace::counter_bytes + products::room_bytes + in * out * 4; }

template <dtype_policy Policy>
void linear_backward_weight(stream queue, workspace room, products& by, linear_backward_weight_arguments<Policy> const& a)
{
    expects(room.bytes >= linear_backward_weight_room(a.in, a.out), "the workspace is too small for the gradient of a weight");
    auto* const gradient = product_of(room);
    bool const in_out = a.order == weight_order::in_out;
    by.multiply(queue, room,
                product_shape{.rows = in_out ? a.in : a.out, .columns = in_out ? a.out : a.in, .terms = a.rows, .left_transposed = true, .element = Policy.storage, .result = dtype::f32},
                product_operands{.left = in_out ? a.input : a.output_gradient, .right = in_out ? a.output_gradient : a.input, .result = gradient});
    exact_accumulate(queue, {.count = a.in * a.out, .gradient = gradient, .target = a.weight_gradient});
}

std::int64_t linear_backward_bias_room(std::int64_t rows, std::int64_t out) { return column_workspace(rows, out, 1); }

template <dtype_policy Policy>
void linear_backward_bias(stream queue, workspace room, linear_backward_bias_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    auto const shape = shape_of_columns<T>(a.rows, a.out, 1, room);
    choose(whole_chunks<T>(a.out, a.output_gradient), [&](auto whole) { launch(queue, shape, backward_bias<T, whole()>, a, room); });
}

template void linear_forward(stream, workspace, products&, linear_forward_arguments<fp32> const&);
template void linear_forward(stream, workspace, products&, linear_forward_arguments<bf16> const&);
template void linear_backward_input(stream, workspace, products&, linear_backward_input_arguments<fp32> const&);
template void linear_backward_input(stream, workspace, products&, linear_backward_input_arguments<bf16> const&);
template void linear_backward_weight(stream, workspace, products&, linear_backward_weight_arguments<fp32> const&);
template void linear_backward_weight(stream, workspace, products&, linear_backward_weight_arguments<bf16> const&);
template void linear_backward_bias(stream, workspace, linear_backward_bias_arguments<fp32> const&);
template void linear_backward_bias(stream, workspace, linear_backward_bias_arguments<bf16> const&);

}  // namespace rheo::inline v0::cuda
