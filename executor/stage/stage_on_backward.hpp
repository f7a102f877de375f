#pragma once
// SPDX-License-Identifier: Apache-2.0

// The operations of a layer backward, for stage_on_pass.hpp: the gradients of what they read, and the contributions to their parameters.

#include "executor/stage/stage_on.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/gelu/gelu.hpp"
#include "kernels/residual_add/residual_add.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/swiglu/swiglu.hpp"

namespace rheo::inline v0 {

template <class Kernels>
earlier_slices<typename Kernels::storage> stage_on<Kernels>::pass::key_gradients_before(std::size_t index) const
{
    earlier_slices<storage> before{.count = item.slice};
    for (std::size_t s = 0; s < a.before.size(); ++s) {
        before.of[s] = at_offset<storage>(a.before[s]->memory, key_gradients(index));
    }
    return before;
}

template <class Kernels>
typename Kernels::gradient_target stage_on<Kernels>::pass::target(std::size_t o, std::size_t i, std::function<bool(use_id)> const& adds) const
{
    auto const use = self.op_uses_[layer][o][i];
    if (use.value < 0 || !adds(use)) {
        return {};
    }
    auto& accumulator = self.state_->accumulator(use);
    auto const tensor = self.tensors_[layer][o][i];
    auto const contributions = self.state_->contributions(tensor, self.microbatches_ * self.shape_.slices);
    if constexpr (Kernels::sums_in_rows) {
        return {.sums = accumulator.sums_in_32.data(),
                .states = accumulator.rows.data(),
                .width = self.state_->info(tensor).shape.columns,
                .contributions = contributions};
    } else {
        return {.sums = accumulator.sums.data(), .state = &accumulator.state, .contributions = contributions};
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::linear_input(std::size_t index, weight_order order)
{
    auto const& o = description().ops[index];
    by.linear_backward_input({.rows = rows(),
                              .in = o.in_width,
                              .out = o.out_width,
                              .order = order,
                              .weight = parameter(index, 0),
                              .output_gradient = gradient_of(o.z[0]),
                              .input_gradient = gradient_of(o.x[0]),
                              .accumulate = has_gradient(o.x[0])});
    gave(o.x[0]);
}

template <class Kernels>
void stage_on<Kernels>::pass::linear_weights(std::size_t index, weight_order order, std::function<bool(use_id)> const& adds)
{
    auto const& o = description().ops[index];
    auto const weight = target(index, 0, adds);
    auto const bias = target(index, 1, adds);
    if constexpr (Kernels::joins_gradients) {
        if (weight.sums != nullptr && bias.sums != nullptr) {
            by.linear_backward_parameters({.rows = rows(),
                                           .in = o.in_width,
                                           .out = o.out_width,
                                           .order = order,
                                           .input = slot(o.x[0]),
                                           .output_gradient = gradient_of(o.z[0]),
                                           .weight_gradient = weight},
                                          bias);
            return;
        }
    }
    if (weight.sums != nullptr) {
        by.linear_backward_weight({.rows = rows(),
                                   .in = o.in_width,
                                   .out = o.out_width,
                                   .order = order,
                                   .input = slot(o.x[0]),
                                   .output_gradient = gradient_of(o.z[0]),
                                   .weight_gradient = weight});
    }
    if (bias.sums != nullptr) {
        by.linear_backward_bias({.rows = rows(), .out = o.out_width, .output_gradient = gradient_of(o.z[0]), .bias_gradient = bias});
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::own_gradient(std::size_t index)
{
    if (auto const& o = description().ops[index]; o.kind == op_kind::linear_gelu) {
        by.gelu_backward({.count = rows() * o.out_width, .input = slot(o.z[0]), .output_gradient = gradient_of(o.z[1]), .input_gradient = gradient_of(o.z[0])});
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::weight_gradient(std::size_t index, std::function<bool(use_id)> const& adds)
{
    auto const& o = description().ops[index];
    switch (o.kind) {
    case op_kind::embedding: {
        auto const table = target(index, 0, adds);
        auto const positions = target(index, 1, adds);
        if (table.sums != nullptr || positions.sums != nullptr) {
            by.embedding_backward_weight({.batch = self.shape_.sequences,
                                          .length = tokens(),
                                          .first = first_token(),
                                          .width = o.out_width,
                                          .vocabulary = o.in_width,
                                          .tokens = a.tokens.data(),
                                          .output_gradient = gradient_of(o.z[0]),
                                          .drop = drop(o),
                                          .token_gradient = table,
                                          .position_gradient = positions});
        }
        break;
    }
    case op_kind::layer_norm: norm_weights(index, slot(o.x[0]), gradient_of(o.z[0]), adds); break;
    case op_kind::residual_norm: norm_weights(index, slot(o.z[0]), gradient_of(o.z[1]), adds); break;
    case op_kind::rms_norm: rms_weights(index, slot(o.x[0]), gradient_of(o.z[0]), adds); break;
    case op_kind::residual_rms_norm: rms_weights(index, slot(o.z[0]), gradient_of(o.z[1]), adds); break;
    case op_kind::linear:
    case op_kind::linear_gelu: linear_weights(index, weight_order::in_out, adds); break;
    case op_kind::unembed: linear_weights(index, weight_order::out_in, adds); break;
    case op_kind::residual_add:
    case op_kind::gelu:
    case op_kind::attention:
    case op_kind::rope:
    case op_kind::swiglu:
    case op_kind::cross_entropy:
    case op_kind::loss_gradient: break;
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::input_gradient(std::size_t index)
{
    auto const& o = description().ops[index];
    switch (o.kind) {
    case op_kind::embedding: break;
    case op_kind::layer_norm:
    case op_kind::rms_norm:
    case op_kind::residual_norm:
    case op_kind::residual_rms_norm: norm_input_gradient(index); break;
    case op_kind::rope:
        rope(o, gradient_of(o.z[0]), gradient_of(o.x[0]), true);
        gave(o.x[0]);
        break;
    case op_kind::swiglu:
        by.swiglu_backward(
            {.rows = rows(), .width = o.out_width, .input = slot(o.x[0]), .output_gradient = gradient_of(o.z[0]), .input_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::residual_add:
        by.residual_add_backward(
            {.rows = rows(), .width = o.in_width, .output_gradient = gradient_of(o.z[0]), .drop = drop(o), .branch_gradient = gradient_of(o.x[1])});
        by.copy(gradient_of(o.x[0]), gradient_of(o.z[0]), static_cast<std::size_t>(rows() * o.in_width) * sizeof(storage));
        gave(o.x[0]);
        gave(o.x[1]);
        break;
    case op_kind::linear:
    case op_kind::linear_gelu: linear_input(index, weight_order::in_out); break;
    case op_kind::unembed: linear_input(index, weight_order::out_in); break;
    case op_kind::gelu:
        by.gelu_backward({.count = rows() * o.in_width, .input = slot(o.x[0]), .output_gradient = gradient_of(o.z[0]), .input_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::attention:
        by.attention_backward({.batch = self.shape_.sequences,
                               .length = tokens(),
                               .width = o.out_width,
                               .heads = o.heads,
                               .kv_heads = o.kv_heads,
                               .qkv = slot(o.x[0]),
                               .before = keys_before(index),
                               .whole = self.shape_.tokens,
                               .output = slot(o.z[0]),
                               .log_sum_exp = saved(index),
                               .output_gradient = gradient_of(o.z[0]),
                               .drop = drop(o),
                               .qkv_gradient = gradient_of(o.x[0]),
                               .kv_gradient_later = item.slice + 1 < self.shape_.slices ? at_offset<storage>(a.memory, key_gradients(index)) : nullptr,
                               .kv_gradient_before = key_gradients_before(index)});
        gave(o.x[0]);
        break;
    case op_kind::cross_entropy:
        by.cross_entropy_backward({.rows = rows(),
                                   .vocabulary = o.in_width,
                                   .logits = slot(o.x[0]),
                                   .targets = a.targets.data(),
                                   .log_sum_exp = saved(index),
                                   .logits_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::loss_gradient:
        gradient[static_cast<std::size_t>(o.x[0])] = slot(o.x[0]);  // forward left it in place of the logits
        gave(o.x[0]);
        break;
    }
}

}  // namespace rheo::inline v0
