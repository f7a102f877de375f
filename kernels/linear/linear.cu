// SPDX-License-Identifier: Apache-2.0
// Products by cuBLASLt, with the bias in their epilogue, and in bf16 the GELU that may follow, backward the slope of the one that may come before. In fp32 a
// kernel of its own makes both (linear_products.hpp). A weight gradient is a product in float, panel by panel, each of which a pass adds to the exact sums.
#include "kernels/linear/linear.hpp"

#include <algorithm>
#include <utility>

#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/policy.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/exact/exact_pairs.cuh"
#include "kernels/exact/exact_panel.hpp"
#include "kernels/gelu/gelu.hpp"
#include "kernels/linear/linear_products.hpp"

namespace rheo::inline v0::cuda {

namespace {

template <bool Whole, class T, class Arguments>
__device__ void bias_gradient(Arguments const& a, std::int64_t gradient_row, workspace scratch, column_place at)
{
    exact_adder adder{a.bias_gradient};
    column_sums<1, T>(
        a.out, scratch, at,
        [&](std::int64_t row, std::int64_t index) { return load<Whole>(a.output_gradient + row * gradient_row, row < a.rows ? a.out : 0, index); },
        [&](chunk<T> const& dy, column_chunk_sums<1, T>& sums) {
            for (int e = 0; e < chunk_size<T>; ++e) {
                sums[0][e] += dy.at(e);
            }
        },
        [&](int, std::int64_t column, float sum) { adder.add(column, sum); }, [&] { adder.merge(); });
}

template <class T, class Sum, bool Whole>
__global__ void __launch_bounds__(column_threads)
    backward_bias(linear_backward_bias_arguments<policy_of<T, Sum>> a, std::int64_t gradient_row, workspace scratch)
{
    bias_gradient<Whole, T>(a, gradient_row, scratch, place_in_grid());
}

/// A panel of the float gradient of a weight into its exact sums, and the gradient of the bias in the blocks before.
struct weight_pass {
    panel_runs runs;
    column_place bias;  ///< how many tiles and groups there are
};

template <class T, bool Whole>
__global__ void __launch_bounds__(pair_threads, Whole ? 4 : 0)
    backward_parameters(weight_pass w, linear_backward_bias_arguments<policy_storing<T>> a, std::int64_t gradient_row, workspace scratch)
{
    static_assert(pair_threads == column_threads, "blocks of both kinds have as many threads");
    if (unsigned const blocks = w.bias.tile * w.bias.groups; blockIdx.x < blocks) {
        bias_gradient<Whole, T>(a, gradient_row, scratch, {.tile = blockIdx.x % w.bias.tile, .group = blockIdx.x / w.bias.tile, .groups = w.bias.groups});
    } else {
        accumulate_block<Whole>(blockIdx.x - blocks, w.runs);
    }
}

/// Where a panel of the float gradient of a weight lies in the workspace: behind the counters and what a product wants.
float* product_of(workspace scratch, std::int64_t before) { return reinterpret_cast<float*>(static_cast<std::byte*>(scratch.memory) + before); }

/// The same where sums of the bias's gradient lie in front, too.
std::int64_t before_product(std::int64_t rows, std::int64_t out)
{
    return std::max(workspace::counter_bytes + products::workspace_bytes, (column_workspace_bytes(rows, out, 1) + 255) / 256 * 256);
}

gradient_sum_of<dtype::i64> at_panel(gradient_sum_of<dtype::i64> target, std::int64_t width, weight_panel const& panel)
{
    target.sums += panel.first_row * width + panel.first_column;
    return target;
}

gradient_sum_of<dtype::i32> at_panel(gradient_sum_of<dtype::i32> target, std::int64_t width, weight_panel const& panel)
{
    target.sums += panel.first_row * width + panel.first_column;
    target.states += panel.first_row;
    return target;
}

/// The gradient of a weight, panel by panel: the product into `gradient`, then add(panel), which has it added to the sums before the next takes its place.
template <dtype_policy Policy, class Add>
void for_weight_products(stream queue, workspace scratch, products& by, linear_backward_weight_arguments<Policy> const& a, float* gradient, Add add)
{
    bool const in_out = a.order == weight_order::in_out;
    auto const* const left = in_out ? a.input : a.output_gradient;
    auto const* const right = in_out ? a.output_gradient : a.input;
    auto const left_row = in_out ? a.in : gradient_row_of(a);
    auto const right_row = in_out ? gradient_row_of(a) : a.in;
    auto const all = linear_weight_panels(a.in, a.out, a.order);
    for_panels(all, [&](weight_panel const& panel) {
        by.multiply(queue, scratch, linear_backward_weight_product(a.rows, all, panel, Policy.storage),
                    product_operands{
                        .left = left + panel.first_row, .right = right + panel.first_column, .result = gradient, .left_row = left_row, .right_row = right_row});
        add(exact_panel_arguments<Policy.accumulate>{.rows = panel.rows,
                                                     .columns = panel.columns,
                                                     .gradient = gradient,
                                                     .target = at_panel(a.weight_gradient, all.columns, panel),
                                                     .width = all.columns});
    });
}

}  // namespace

template <dtype_policy Policy>
void linear_forward(stream queue, workspace scratch, products& by, linear_forward_arguments<Policy> const& a)
{
    bool const gelu = a.activated != nullptr && gelu_in_product(Policy.storage);
    bool const partial = a.partial != nullptr;
    std::int64_t const output_row = output_row_of(a);
    bool const all = by.multiply(queue, scratch, linear_forward_product(a.rows, a.in, a.out, a.order, Policy.storage, a.bias != nullptr, gelu, partial),
                                 product_operands{.left = a.input,
                                                  .right = a.weight,
                                                  .bias = a.bias,
                                                  .result = partial ? static_cast<void*>(a.partial) : a.output,
                                                  .activated = a.activated,
                                                  .result_row = gelu ? 0 : output_row});
    if (a.activated != nullptr && !(gelu && all)) {
        gelu_forward<Policy>(queue, {.count = a.rows * a.out, .input = a.output, .output = a.activated});
    }
}

template <dtype_policy Policy>
void linear_backward_input(stream queue, workspace scratch, products& by, linear_backward_input_arguments<Policy> const& a)
{
    bool const partial = a.partial != nullptr;
    bool const slope = a.pre_activation != nullptr && gelu_in_product(Policy.storage);
    expect_one_result(a);
    bool const all = by.multiply(queue, scratch, linear_backward_input_product(a.rows, a.in, a.out, a.order, Policy.storage, a.accumulate, partial, slope),
                                 product_operands{.left = a.output_gradient,
                                                  .right = a.weight,
                                                  .result = partial ? static_cast<void*>(a.partial) : a.input_gradient,
                                                  .pre_activation = slope ? a.pre_activation : nullptr,
                                                  .left_row = gradient_row_of(a)});
    if (a.pre_activation != nullptr && !(slope && all)) {
        gelu_backward<Policy>(queue,
                              {.count = a.rows * a.in, .input = a.pre_activation, .output_gradient = a.input_gradient, .input_gradient = a.input_gradient});
    }
}

std::int64_t linear_backward_weight_workspace_bytes(std::int64_t in, std::int64_t out)
{
    return workspace::counter_bytes + products::workspace_bytes + panel_bytes(in * out);
}

template <dtype_policy Policy>
void linear_backward_weight(stream queue, workspace scratch, products& by, linear_backward_weight_arguments<Policy> const& a)
{
    expects(scratch.bytes >= linear_backward_weight_workspace_bytes(a.in, a.out), "the workspace is too small for the gradient of a weight");
    if constexpr (Policy.accumulate == dtype::i32) {
        expects(a.weight_gradient.width == (a.order == weight_order::in_out ? a.out : a.in), "a row of the sums of a weight is one of the weight");
    }
    for_weight_products(queue, scratch, by, a, product_of(scratch, workspace::counter_bytes + products::workspace_bytes),
                        [&](auto const& panel) { exact_accumulate_panel(queue, panel); });
}

std::int64_t linear_backward_bias_workspace_bytes(std::int64_t rows, std::int64_t out) { return column_workspace_bytes(rows, out, 1); }

template <dtype_policy Policy>
void linear_backward_bias(stream queue, workspace scratch, linear_backward_bias_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    auto const shape = shape_of_columns<T>(a.rows, a.out, 1, scratch);
    choose(whole_chunks<T>(a.out, a.output_gradient) && whole_chunks<T>(gradient_row_of(a)),
           [&](auto whole) { launch(queue, shape, backward_bias<T, accumulate_t<Policy>, whole()>, a, gradient_row_of(a), scratch); });
}

std::int64_t linear_backward_parameters_workspace_bytes(std::int64_t rows, std::int64_t in, std::int64_t out)
{
    return before_product(rows, out) + panel_bytes(in * out);
}

template <dtype_policy Policy>
void linear_backward_parameters(stream queue, workspace scratch, products& by, linear_backward_weight_arguments<Policy> const& a,
                                gradient_sum<Policy> const& bias)
{
    using T = storage_t<Policy>;
    linear_backward_bias_arguments<Policy> const of_bias{
        .rows = a.rows, .out = a.out, .output_gradient = a.output_gradient, .bias_gradient = bias, .output_gradient_row = a.output_gradient_row};
    if (a.weight_gradient.sums == nullptr || bias.sums == nullptr) {
        if (a.weight_gradient.sums != nullptr) {
            linear_backward_weight(queue, scratch, by, a);
        }
        if (bias.sums != nullptr) {
            linear_backward_bias(queue, scratch, of_bias);
        }
        return;
    }
    expects(scratch.bytes >= linear_backward_parameters_workspace_bytes(a.rows, a.in, a.out),
            "the workspace is too small for the gradients of a weight and its bias");
    auto shape = shape_of_columns<T>(a.rows, a.out, 1, scratch);
    column_place const bias_blocks{.tile = shape.grid.x, .group = 0, .groups = shape.grid.y};
    bool first = true;
    for_weight_products(queue, scratch, by, a, product_of(scratch, before_product(a.rows, a.out)), [&](exact_panel_arguments<dtype::i64> const& panel) {
        if (!std::exchange(first, false)) {
            exact_accumulate_panel(queue, panel);
            return;
        }
        weight_pass const pass{.runs = runs_of(panel), .bias = bias_blocks};
        shape.grid = pass.bias.tile * pass.bias.groups + pass.runs.blocks;
        bool const whole = whole_chunks<T>(a.out, a.output_gradient) && whole_chunks<T>(gradient_row_of(a)) && pass.runs.whole;
        choose(whole, [&](auto is_whole) { launch(queue, shape, backward_parameters<T, is_whole()>, pass, of_bias, gradient_row_of(a), scratch); });
    });
}

template void linear_forward(stream, workspace, products&, linear_forward_arguments<fp32> const&);
template void linear_forward(stream, workspace, products&, linear_forward_arguments<bf16> const&);
template void linear_backward_input(stream, workspace, products&, linear_backward_input_arguments<fp32> const&);
template void linear_backward_input(stream, workspace, products&, linear_backward_input_arguments<bf16> const&);
template void linear_backward_weight(stream, workspace, products&, linear_backward_weight_arguments<fp32> const&);
template void linear_backward_weight(stream, workspace, products&, linear_backward_weight_arguments<bf16> const&);
template void linear_backward_weight(stream, workspace, products&, linear_backward_weight_arguments<fp32_i32> const&);
template void linear_backward_weight(stream, workspace, products&, linear_backward_weight_arguments<bf16_i32> const&);
template void linear_backward_bias(stream, workspace, linear_backward_bias_arguments<fp32> const&);
template void linear_backward_bias(stream, workspace, linear_backward_bias_arguments<bf16> const&);
template void linear_backward_bias(stream, workspace, linear_backward_bias_arguments<fp32_i32> const&);
template void linear_backward_bias(stream, workspace, linear_backward_bias_arguments<bf16_i32> const&);
template void linear_backward_parameters(stream, workspace, products&, linear_backward_weight_arguments<fp32> const&, gradient_sum<fp32> const&);
template void linear_backward_parameters(stream, workspace, products&, linear_backward_weight_arguments<bf16> const&, gradient_sum<bf16> const&);

}  // namespace rheo::inline v0::cuda
