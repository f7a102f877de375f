#pragma once
// SPDX-License-Identifier: Apache-2.0

// The operations that a model needs for its tokens, whatever a program computes besides: the count by which model flops utilization (MFU) is known.
// As PaLM counts them (Chowdhery et al. 2022, arXiv:2204.02311, appendix B), and Megatron-LM without recomputation (Narayanan et al. 2021, arXiv:2104.04473,
// section 5.1): 6 operations per token for each parameter of a matrix product, and 12 x heads x head width x tokens of the sequence for each attention. So the
// causal mask saves nothing, a recomputation adds nothing, and tables that are looked up, norms and activations count nothing. Here the parameters of
// products are those that the model multiplies with: biases are left out, a table counts where it makes the logits, tied or not.

#include <cstdint>

#include "rheo/model/model.hpp"
#include "rheo/model/op.hpp"
#include "rheo/tensor/shape.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Of an operation in a microbatch, forward and backward.
constexpr flops model_flops(op const& o, microbatch_shape shape)
{
    auto const tokens = microbatch_rows(shape);
    auto const out = std::int64_t{o.out_width};
    switch (o.kind) {
    case op_kind::linear:
    case op_kind::linear_gelu:
    case op_kind::unembed: return {6 * tokens * o.in_width * out};
    case op_kind::attention: return {12 * tokens * shape.tokens * out};
    default: return {0};
    }
}

/// Of a microbatch, forward and backward, in one or in many slices.
template <class OnlyWhenCalled = void>
constexpr flops model_flops(model_description const& model, microbatch_shape shape)
{
    flops sum;
    for (auto const& layer : model.layers) {
        for (auto const& o : layer.ops) {
            sum += model_flops(o, shape);
        }
    }
    return sum;
}

}  // namespace rheo::inline v0
