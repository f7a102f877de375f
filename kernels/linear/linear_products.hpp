#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which products a linear operation is on a device: what its kernels put into the queue, and what a table for a whole model is made from.

#include <cstdint>

#include "kernels/cuda/product.hpp"
#include "kernels/linear/linear.hpp"
#include "kernels/linear/weight_panels.hpp"

namespace rheo::inline v0::cuda {

/// output = input weight, and what the epilogue does besides; a partial one stays in float.
constexpr product_shape linear_forward_product(std::int64_t rows, std::int64_t in, std::int64_t out, weight_order order, dtype storage, bool has_bias,
                                               bool gelu, bool partial = false)
{
    return {.rows = rows,
            .columns = out,
            .terms = in,
            .right_transposed = order == weight_order::out_in,
            .element = storage,
            .result = partial ? dtype::f32 : storage,
            .has_bias = has_bias,
            .gelu = gelu};
}

constexpr product_shape linear_backward_input_product(std::int64_t rows, std::int64_t in, std::int64_t out, weight_order order, dtype storage, bool accumulates,
                                                      bool partial = false, bool gelu_slope = false)
{
    return {.rows = rows,
            .columns = in,
            .terms = out,
            .right_transposed = order == weight_order::in_out,
            .element = storage,
            .result = partial ? dtype::f32 : storage,
            .adds = accumulates,
            .gelu_slope = gelu_slope};
}

/// How the weight, as it lies, is cut for the products of its gradient.
constexpr weight_panels linear_weight_panels(std::int64_t in, std::int64_t out, weight_order order)
{
    bool const in_out = order == weight_order::in_out;
    return weight_panels_of(in_out ? in : out, in_out ? out : in);
}

/// A panel of the gradient of the weight, as the weight lies. Rows of operands whose panels are not all of them are as far apart as those of the whole.
constexpr product_shape linear_backward_weight_product(std::int64_t rows, weight_panels const& all, weight_panel const& panel, dtype storage)
{
    auto const unaligned = [&](std::int64_t part, std::int64_t whole) { return part < whole && whole * size_of(storage) % products::alignment != 0; };
    return {.rows = panel.rows,
            .columns = panel.columns,
            .terms = rows,
            .left_transposed = true,
            .element = storage,
            .result = dtype::f32,
            .left_unaligned = unaligned(panel.rows, all.rows),
            .right_unaligned = unaligned(panel.columns, all.columns)};
}

/// cuBLASLt's epilogues have a GELU and its slope for what is stored in bf16; what it takes for a hyperbolic tangent in fp32 is not known.
constexpr bool gelu_in_product(dtype storage) { return storage == dtype::bf16; }

}  // namespace rheo::inline v0::cuda
