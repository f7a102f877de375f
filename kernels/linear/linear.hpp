#pragma once
// SPDX-License-Identifier: Apache-2.0

// y = x W + bias, with W as [in, out] (the orientation of GPT-2's files) or as [out, in] (a classifier tied
// to the token table), and optionally GELU of the result in one pass: then both the pre-activation, which
// backward needs, and the activated value are stored, each rounded as the two operations would have; on a device in bf16 the activated
// value may be that of the sum before it is rounded, which is nearer to it. Likewise back through a GELU before the product, in one pass with the
// gradient of the product's input.
// The grid of tiles below is part of the definition: a BLAS gives other bits for another grid.
// Of a shard whose inner dimension is cut the result is a partial one, in the type that is computed in and without bias: shard_sum adds those of all
// shards. Rows of the output may lie apart, so that two products of a shard write into one slot side by side.

#include <cstdint>

#include "kernels/cuda/product.hpp"
#include "kernels/exact/exact.hpp"
#include "kernels/gelu/gelu.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

enum class weight_order : std::uint8_t { in_out, out_in };

/// The tiles of the host products, in elements of the result.
struct tile_grid {
    std::int64_t rows;
    std::int64_t columns;
};
inline constexpr tile_grid product_tiles{.rows = 256, .columns = 384};  ///< forward, input gradient
/// Of the weight gradient, over the stored weight: wide, so that a tile's int64 sums lie in one piece of memory.
inline constexpr tile_grid weight_gradient_tiles{.rows = 192, .columns = 3072};

template <dtype_policy Policy = fp32>
struct linear_forward_arguments {
    std::int64_t rows;
    std::int64_t in;
    std::int64_t out;
    weight_order order = weight_order::in_out;
    storage_t<Policy> const* input;           // [rows, in]
    storage_t<Policy> const* weight;          // [in, out] or [out, in]
    storage_t<Policy> const* bias = nullptr;  // [out] or null
    storage_t<Policy>* output = nullptr;      // [rows, out], the pre-activation when activated is given
    storage_t<Policy>* activated = nullptr;   // [rows, out] = gelu(output), or null
    compute_t<Policy>* partial = nullptr;     // [rows, out], where output is null: the product alone, not rounded
    std::int64_t output_row = 0;              ///< elements from row to row of output; 0: out. Nothing is activated, then
};

template <dtype_policy Policy = fp32>
struct linear_backward_input_arguments {
    std::int64_t rows;
    std::int64_t in;
    std::int64_t out;
    weight_order order = weight_order::in_out;
    storage_t<Policy> const* weight;              // [in, out] or [out, in]
    storage_t<Policy> const* output_gradient;     // [rows, out]
    storage_t<Policy>* input_gradient = nullptr;  // [rows, in]
    bool accumulate = false;                      ///< add to input_gradient, or to partial, instead of overwriting it
    compute_t<Policy>* partial = nullptr;         // [rows, in], where input_gradient is null: not rounded
    std::int64_t output_gradient_row = 0;         ///< elements from row to row of output_gradient; 0: out
    /// [rows, in] or null: the input is gelu of this, and input_gradient the gradient of this. Nothing is accumulated, then, and nothing partial
    storage_t<Policy> const* pre_activation = nullptr;
};

template <dtype_policy Policy = fp32>
struct linear_backward_weight_arguments {
    std::int64_t rows;
    std::int64_t in;
    std::int64_t out;
    weight_order order = weight_order::in_out;
    storage_t<Policy> const* input;            // [rows, in]
    storage_t<Policy> const* output_gradient;  // [rows, out]
    gradient_sum<Policy> weight_gradient;      // [in, out] or [out, in]
    std::int64_t output_gradient_row = 0;      ///< elements from row to row of output_gradient; 0: out
};

template <dtype_policy Policy = fp32>
struct linear_backward_bias_arguments {
    std::int64_t rows;
    std::int64_t out;
    storage_t<Policy> const* output_gradient;  // [rows, out]
    gradient_sum<Policy> bias_gradient;        // [out]
    std::int64_t output_gradient_row = 0;      ///< elements from row to row of output_gradient; 0: out
};

/// Elements from row to row of what a linear wrote, of arguments of its forward.
template <dtype_policy Policy>
constexpr std::int64_t output_row_of(linear_forward_arguments<Policy> const& a)
{
    expects((a.output == nullptr) != (a.partial == nullptr), "a linear writes its output, or a partial one");
    expects(a.partial == nullptr || (a.bias == nullptr && a.activated == nullptr), "a partial product has no bias and no activation");
    expects(a.output_row == 0 || (a.output_row >= a.out && a.activated == nullptr && a.partial == nullptr),
            "rows of an output that lie apart have room for it, and are not activated");
    return a.output_row == 0 ? a.out : a.output_row;
}

/// The same of its gradient, of arguments of a backward.
template <class Arguments>
constexpr std::int64_t gradient_row_of(Arguments const& a)
{
    expects(a.output_gradient_row == 0 || a.output_gradient_row >= a.out, "rows of a gradient that lie apart have room for it");
    return a.output_gradient_row == 0 ? a.out : a.output_gradient_row;
}

/// @pre of a linear_backward_input: one result, and what one with a GELU before it asks for
template <dtype_policy Policy>
constexpr void expect_one_result(linear_backward_input_arguments<Policy> const& a)
{
    expects((a.input_gradient == nullptr) != (a.partial == nullptr), "a linear writes the gradient of its input, or a partial one");
    expects(a.pre_activation == nullptr || (a.partial == nullptr && !a.accumulate), "a gradient back through a GELU is whole, and adds to nothing");
}

namespace definition {

/// Where weight (i, o) lies.
constexpr std::int64_t weight_index(weight_order order, std::int64_t in, std::int64_t out, std::int64_t i, std::int64_t o)
{
    return order == weight_order::in_out ? i * out + o : o * in + i;
}

template <dtype_policy Policy>
void linear_forward(linear_forward_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    using storage = storage_t<Policy>;
    std::int64_t const output_row = output_row_of(a);
    for (std::int64_t r = 0; r < a.rows; ++r) {
        for (std::int64_t o = 0; o < a.out; ++o) {
            compute sum = 0;
            for (std::int64_t i = 0; i < a.in; ++i) {
                sum += compute(a.input[r * a.in + i]) * compute(a.weight[weight_index(a.order, a.in, a.out, i, o)]);
            }
            if (a.partial != nullptr) {
                a.partial[r * a.out + o] = sum;
                continue;
            }
            sum += a.bias != nullptr ? compute(a.bias[o]) : compute(0);
            a.output[r * output_row + o] = static_cast<storage>(sum);
            if (a.activated != nullptr) {
                a.activated[r * a.out + o] = static_cast<storage>(gelu(compute(a.output[r * a.out + o])));
            }
        }
    }
}

template <dtype_policy Policy>
void linear_backward_input(linear_backward_input_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    expect_one_result(a);
    std::int64_t const gradient_row = gradient_row_of(a);
    for (std::int64_t r = 0; r < a.rows; ++r) {
        for (std::int64_t i = 0; i < a.in; ++i) {
            compute sum = 0;
            for (std::int64_t o = 0; o < a.out; ++o) {
                sum += compute(a.output_gradient[r * gradient_row + o]) * compute(a.weight[weight_index(a.order, a.in, a.out, i, o)]);
            }
            if (a.partial != nullptr) {
                a.partial[r * a.in + i] = a.accumulate ? a.partial[r * a.in + i] + sum : sum;
                continue;
            }
            auto& target = a.input_gradient[r * a.in + i];
            target = static_cast<storage_t<Policy>>(a.accumulate ? compute(target) + sum : sum);
            if (a.pre_activation != nullptr) {
                target = static_cast<storage_t<Policy>>(compute(target) * gelu_derivative(compute(a.pre_activation[r * a.in + i])));
            }
        }
    }
}

template <dtype_policy Policy>
void linear_backward_weight(linear_backward_weight_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    std::int64_t const gradient_row = gradient_row_of(a);
    for (std::int64_t i = 0; i < a.in; ++i) {
        for (std::int64_t o = 0; o < a.out; ++o) {
            compute sum = 0;
            for (std::int64_t r = 0; r < a.rows; ++r) {
                sum += compute(a.input[r * a.in + i]) * compute(a.output_gradient[r * gradient_row + o]);
            }
            contribute(a.weight_gradient, weight_index(a.order, a.in, a.out, i, o), sum);
        }
    }
}

template <dtype_policy Policy>
void linear_backward_bias(linear_backward_bias_arguments<Policy> const& a)
{
    std::int64_t const gradient_row = gradient_row_of(a);
    for (std::int64_t o = 0; o < a.out; ++o) {
        compute_t<Policy> sum = 0;
        for (std::int64_t r = 0; r < a.rows; ++r) {
            sum += compute_t<Policy>(a.output_gradient[r * gradient_row + o]);
        }
        contribute(a.bias_gradient, o, sum);
    }
}

}  // namespace definition

class tile_pool;

namespace host {

void linear_forward(tile_pool& pool, linear_forward_arguments<> const& arguments);
/// The same products, of which a row has the same bits whatever rows are beside it, and however many: a BLAS has others for other numbers of rows. Sums
/// are in another order than linear_forward's. Quickest where rows are few: weights are read once for four of them, and not packed.
void linear_forward_in_rows(tile_pool& pool, linear_forward_arguments<> const& arguments);
void linear_backward_input(tile_pool& pool, linear_backward_input_arguments<> const& arguments);
void linear_backward_weight(tile_pool& pool, linear_backward_weight_arguments<> const& arguments);
void linear_backward_weight(tile_pool& pool, linear_backward_weight_arguments<fp32_i32> const& arguments);
/// Plain float sums: not exact, kept to measure what exactness costs.
void linear_backward_weight(tile_pool& pool, linear_backward_weight_arguments<fp32_inexact> const& arguments);
void linear_backward_bias(tile_pool& pool, linear_backward_bias_arguments<> const& arguments);
void linear_backward_bias(tile_pool& pool, linear_backward_bias_arguments<fp32_i32> const& arguments);

}  // namespace host

namespace cuda {

// Policy is fp32 or bf16, of the gradient of a weight or a bias also fp32_i32 or bf16_i32; pointers are the device's, and results are there when the stream is. The workspace of products has
// workspace::counter_bytes + products::workspace_bytes, of weights and biases what the functions below say. Bits depend on the shape, the policy, the table of
// algorithms in `by` and the device's architecture; those of the gradient of a weight through its panels (weight_panels.hpp), which follow from `in`, `out` and
// the order alone. No workspace, however large, changes them.
template <dtype_policy Policy>
void linear_forward(stream queue, workspace scratch, products& by, linear_forward_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void linear_backward_input(stream queue, workspace scratch, products& by, linear_backward_input_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void linear_backward_weight(stream queue, workspace scratch, products& by, linear_backward_weight_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void linear_backward_bias(stream queue, workspace scratch, linear_backward_bias_arguments<Policy> const& arguments);

/// Both gradients, the bias's beside the pass that adds the weight's first panel to its sums, with the bits of the two apart; sums that are null are left out.
template <dtype_policy Policy>
void linear_backward_parameters(stream queue, workspace scratch, products& by, linear_backward_weight_arguments<Policy> const& arguments,
                                gradient_sum<Policy> const& bias_gradient);

// Bytes for counters, an algorithm and one panel: 48 MiB and 64 KiB at most, but for sums over the rows of more than 32 MiB.
std::int64_t linear_backward_weight_workspace_bytes(std::int64_t in, std::int64_t out);
std::int64_t linear_backward_parameters_workspace_bytes(std::int64_t rows, std::int64_t in, std::int64_t out);
std::int64_t linear_backward_bias_workspace_bytes(std::int64_t rows, std::int64_t out);

}  // namespace cuda
}  // namespace rheo::inline v0
