#pragma once
// SPDX-License-Identifier: Apache-2.0

// The operations of a layer backward, for stage_on_pass.hpp: the gradients of what they read, and the contributions to their parameters; of each shard, and
// through the exchanges between shards. The gradient of gathered rows is the sum of the shards' partial ones; that of a sum over shards is the same for all.

#include "executor/stage/pre_activation.hpp"
#include "executor/stage/stage_on.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/gelu/gelu.hpp"
#include "kernels/residual_add/residual_add.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/swiglu/swiglu.hpp"

namespace rheo::inline v0 {

template <class Kernels>
earlier_slices<typename Kernels::storage> stage_on<Kernels>::pass::key_gradients_before(std::size_t j, std::size_t index) const
{
    earlier_slices<storage> before{.count = item.slice};
    for (std::size_t s = 0; s < a.before.size(); ++s) {
        before.of[s] = at_offset<storage>(a.before[s]->memory, key_gradients(j, index));
    }
    return before;
}

template <class Kernels>
typename Kernels::gradient_target stage_on<Kernels>::pass::target(std::size_t j, std::size_t o, std::size_t i, std::function<bool(use_id)> const& adds) const
{
    auto const& here = self.parameters_[layer][j][o];
    auto const use = here.uses[i];
    if (use.value < 0 || !adds(use)) {
        return {};
    }
    self.adding_.push_back(use);
    auto& accumulator = self.state_->accumulator(use);
    auto const tensor = here.tensors[i];
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
void stage_on<Kernels>::pass::linear_input(std::size_t j, std::size_t index, weight_order order)
{
    auto const& [kind, o, column, part, count, positions] = op_of(j, index);
    bool const is_partial = form(o.x[0]) == slot_form::gathered;
    auto const width = all().width(j, o.z[0]);
    auto const before = pre_activation_of(all().shards[j], index);
    by.linear_backward_input({.rows = rows(),
                              .in = o.in_width,
                              .out = o.out_width,
                              .order = order,
                              .weight = parameter(j, index, 0),
                              .output_gradient = gradient_of(j, o.z[0]) + column,
                              .input_gradient = is_partial ? nullptr : gradient_of(j, before == no_slot ? o.x[0] : before),
                              .accumulate = has_gradient(j, o.x[0]),
                              .partial = is_partial ? partial_gradient_of(j, o.x[0]) : nullptr,
                              .output_gradient_row = width == o.out_width ? 0 : width,
                              .pre_activation = before == no_slot ? nullptr : slot(j, before)});
    gave(j, before == no_slot ? o.x[0] : before);
}

template <class Kernels>
void stage_on<Kernels>::pass::linear_weights(std::size_t j, std::size_t index, weight_order order, std::function<bool(use_id)> const& adds)
{
    auto const& o = op_of(j, index).own;
    auto const weight = target(j, index, 0, adds);
    auto const bias = target(j, index, 1, adds);
    auto const* const output_gradient = gradient_of(j, o.z[0]) + op_of(j, index).column;
    auto const width = all().width(j, o.z[0]);
    std::int64_t const row = width == o.out_width ? 0 : width;
    if constexpr (Kernels::joins_gradients) {
        if (weight.sums != nullptr && bias.sums != nullptr) {
            by.linear_backward_parameters({.rows = rows(),
                                           .in = o.in_width,
                                           .out = o.out_width,
                                           .order = order,
                                           .input = slot(j, o.x[0]),
                                           .output_gradient = output_gradient,
                                           .weight_gradient = weight,
                                           .output_gradient_row = row},
                                          bias);
            return;
        }
    }
    if (weight.sums != nullptr) {
        by.linear_backward_weight({.rows = rows(),
                                   .in = o.in_width,
                                   .out = o.out_width,
                                   .order = order,
                                   .input = slot(j, o.x[0]),
                                   .output_gradient = output_gradient,
                                   .weight_gradient = weight,
                                   .output_gradient_row = row});
    }
    if (bias.sums != nullptr) {
        by.linear_backward_bias({.rows = rows(), .out = o.out_width, .output_gradient = output_gradient, .bias_gradient = bias, .output_gradient_row = row});
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::own_gradient(std::size_t index)
{
    for (std::size_t j = 0; j < shards() && op_of(0, index).own.kind == op_kind::linear_gelu; ++j) {
        auto const& o = op_of(j, index).own;
        if (has_gradient(j, o.z[0])) {
            continue;  // from the product that read the activation
        }
        by.gelu_backward(
            {.count = rows() * o.out_width, .input = slot(j, o.z[0]), .output_gradient = gradient_of(j, o.z[1]), .input_gradient = gradient_of(j, o.z[0])});
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::weight_gradient(std::size_t index, std::function<bool(use_id)> const& adds)
{
    for (std::size_t j = 0; j < shards(); ++j) {
        auto const& o = op_of(j, index);
        if (o.kind == shard_op_kind::operation) {
            weight_gradient_of(j, index, adds);
        } else if (o.kind == shard_op_kind::sum_shards) {  // the bias: each shard has a strip of it
            auto const bias = target(j, index, 1, adds);
            if (auto const [begin, end] = strip(j); begin < end && bias.sums != nullptr) {
                by.linear_backward_bias({.rows = end - begin, .out = o.own.out_width, .output_gradient = strip_gradient(j, o.own.z[0]), .bias_gradient = bias});
            }
        }
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::embedding_weights(std::size_t j, std::size_t index, std::function<bool(use_id)> const& adds)
{
    auto const& [kind, o, column, part, count, positions] = op_of(j, index);
    auto const table = target(j, index, 0, adds);
    auto const of_positions = target(j, index, 1, adds);
    if (table.sums != nullptr || of_positions.sums != nullptr) {
        by.embedding_backward_weight({.batch = self.shape_.sequences,
                                      .length = tokens(),
                                      .first = first_token(),
                                      .width = o.out_width,
                                      .vocabulary = grid() == 1 ? o.in_width : count,
                                      .tokens = a.tokens.data(),
                                      .output_gradient = gradient_of(j, o.z[0]),
                                      .drop = drop(o, 0),
                                      .token_gradient = table,
                                      .position_gradient = of_positions,
                                      .token_begin = part.begin,
                                      .token_end = part.end,
                                      .position_begin = positions.begin,
                                      .position_end = positions.end});
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::weight_gradient_of(std::size_t j, std::size_t index, std::function<bool(use_id)> const& adds)
{
    switch (op_of(j, index).own.kind) {
    case op_kind::embedding: embedding_weights(j, index, adds); break;
    case op_kind::layer_norm:
    case op_kind::residual_norm: norm_weights(j, index, adds); break;
    case op_kind::rms_norm:
    case op_kind::residual_rms_norm: rms_weights(j, index, adds); break;
    case op_kind::qk_norm: qk_norm_weights(j, index, adds); break;
    case op_kind::linear:
    case op_kind::linear_gelu: linear_weights(j, index, weight_order::in_out, adds); break;
    case op_kind::unembed: linear_weights(j, index, weight_order::out_in, adds); break;
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
    auto const& first = op_of(0, index);
    if (first.kind != shard_op_kind::operation) {
        return exchange_gradient(index);
    }
    if (first.own.kind == op_kind::cross_entropy && grid() > 1) {
        loss_of_shards(index, std::span{&self.counted_already_, 1}, true);
        return all_gave(first.own.x[0]);
    }
    for (std::size_t j = 0; j < shards(); ++j) {
        input_gradient_of(j, index);
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::attention_gradient(std::size_t j, std::size_t index)
{
    auto const& [kind, o, column, part, count, positions] = op_of(j, index);
    by.attention_backward({.batch = self.shape_.sequences,
                           .length = tokens(),
                           .width = o.out_width,
                           .heads = o.heads,
                           .kv_heads = o.kv_heads,
                           .qkv = slot(j, o.x[0]),
                           .before = keys_before(j, index),
                           .whole = self.shape_.tokens,
                           .output = slot(j, o.z[0]),
                           .log_sum_exp = saved(j, index),
                           .output_gradient = gradient_of(j, o.z[0]),
                           .drop = drop(o, 0),
                           .first_head = part.begin,
                           .all_heads = count,
                           .qkv_gradient = gradient_of(j, o.x[0]),
                           .kv_gradient_later = item.slice + 1 < self.shape_.slices ? at_offset<storage>(a.memory, key_gradients(j, index)) : nullptr,
                           .kv_gradient_before = key_gradients_before(j, index)});
}

template <class Kernels>
void stage_on<Kernels>::pass::input_gradient_of(std::size_t j, std::size_t index)
{
    auto const& o = op_of(j, index).own;
    switch (o.kind) {
    case op_kind::embedding: return;
    case op_kind::layer_norm:
    case op_kind::rms_norm:
    case op_kind::residual_norm:
    case op_kind::residual_rms_norm: return norm_input_gradient(j, index);
    case op_kind::qk_norm: qk_norm_input(j, index); break;
    case op_kind::rope: rope(o, gradient_of(j, o.z[0]), gradient_of(j, o.x[0]), true); break;
    case op_kind::swiglu:
        by.swiglu_backward({.rows = rows(),
                            .width = o.out_width,
                            .input = slot(j, o.x[0]),
                            .output_gradient = gradient_of(j, o.z[0]),
                            .input_gradient = gradient_of(j, o.x[0])});
        break;
    case op_kind::residual_add:
        if (auto const [begin, end] = strip(j); begin < end) {
            by.residual_add_backward({.rows = end - begin,
                                      .width = o.in_width,
                                      .output_gradient = strip_gradient(j, o.z[0]),
                                      .drop = drop(o, begin),
                                      .branch_gradient = strip_gradient(j, o.x[1])});
            by.copy(strip_gradient(j, o.x[0]), strip_gradient(j, o.z[0]), static_cast<std::size_t>((end - begin) * o.in_width) * sizeof(storage));
        }
        gave(j, o.x[1]);
        break;
    case op_kind::linear:
    case op_kind::linear_gelu: return linear_input(j, index, weight_order::in_out);
    case op_kind::unembed: return linear_input(j, index, weight_order::out_in);
    case op_kind::gelu:
        by.gelu_backward(
            {.count = rows() * o.in_width, .input = slot(j, o.x[0]), .output_gradient = gradient_of(j, o.z[0]), .input_gradient = gradient_of(j, o.x[0])});
        break;
    case op_kind::attention: attention_gradient(j, index); break;
    case op_kind::cross_entropy:
        by.cross_entropy_backward({.rows = rows(),
                                   .vocabulary = o.in_width,
                                   .logits = slot(j, o.x[0]),
                                   .targets = a.targets.data(),
                                   .log_sum_exp = saved(j, index),
                                   .logits_gradient = gradient_of(j, o.x[0])});
        break;
    case op_kind::loss_gradient:
        gradient[j][static_cast<std::size_t>(o.x[0])] = slot(j, o.x[0]);  // forward left it in place of the logits
        break;
    }
    gave(j, o.x[0]);
}

}  // namespace rheo::inline v0
