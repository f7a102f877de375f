#pragma once
// SPDX-License-Identifier: Apache-2.0

// The definitions of stage_on.hpp, for the one source file of each back end that makes its stage.

#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/gelu/gelu.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/residual_add/residual_add.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "kernels/residual_rms_norm/residual_rms_norm.hpp"
#include "kernels/rms_norm/rms_norm.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/swiglu/swiglu.hpp"
#include "runtime/stage_on.hpp"

namespace rheo::inline v0 {

template <class Kernels>
void stage_on<Kernels>::rise(activation& a, stage_item const& item, loss_sum& loss)
{
    for (std::size_t l = 0; l < layers_.size(); ++l) {
        pass p{*this, a, item, l};
        for (std::size_t o = 0; o < layers_[l].ops.size(); ++o) {
            p.forward(o, loss);
        }
    }
}

template <class Kernels>
void stage_on<Kernels>::weigh(activation& a, stage_item const& item, layer_id lowest, std::function<bool(use_id)> const& adds)
{
    begin_adding();
    for (std::size_t l = layers_.size(); l-- > depth_of(lowest);) {
        pass p{*this, a, item, l};
        auto const& layer = layers_[l];
        for (std::size_t s = 0; s < layer.slot_widths.size(); ++s) {
            auto const number = static_cast<int>(s);
            p.gradient.push_back(loss_writes_gradient(layer, number) ? p.slot(number) : p.kept(number));
        }
        for (std::size_t o = layer.ops.size(); o-- > 0;) {
            p.weight_gradient(o, adds);
        }
    }
    end_adding();
}

template <class Kernels>
void stage_on<Kernels>::descend(activation& a, stage_item const& item, layer_id lowest, void* output_gradient, void* input_gradient,
                    std::function<bool(use_id)> const* adds)
{
    bool const keeps = adds == nullptr;
    if (!keeps) {
        begin_adding();
    }
    // The gradient that enters a layer may be written over.
    auto* above = static_cast<storage*>(output_gradient);
    auto const stop = depth_of(lowest);
    for (std::size_t l = layers_.size(); l-- > stop;) {
        pass p{*this, a, item, l};
        auto const& layer = layers_[l];
        std::size_t next = 0;
        for (std::size_t s = 0; s < layer.slot_widths.size(); ++s) {
            storage* const kept = keeps ? p.kept(static_cast<int>(s)) : nullptr;
            p.gradient.push_back(kept != nullptr ? kept : pass::template at_offset<storage>(gradients_, static_cast<std::ptrdiff_t>(next)));
            p.has.push_back(0);
            next += slot_bytes(l, s);
        }
        if (layer.output != no_slot) {
            auto& entering = p.gradient[static_cast<std::size_t>(layer.output)];
            if (keeps && p.kept(layer.output) != nullptr && above != entering) {
                kernels_.copy(entering, above, output_bytes());  // the stage's last layer: nothing wrote it there
            } else {
                entering = above;
            }
            p.gave(layer.output);
        }
        auto* below = l == stop && input_gradient != nullptr ? static_cast<storage*>(input_gradient) : pass::template at_offset<storage>(boundaries_[l % 2], 0);
        if (keeps && l > stop) {
            pass const next_down{*this, a, item, l - 1};
            storage* const kept = next_down.kept(layers_[l - 1].output);
            below = kept != nullptr ? kept : below;
        }
        if (layer.in_width != 0) {
            p.gradient[0] = below;
        }
        for (std::size_t o = layer.ops.size(); o-- > 0;) {
            p.own_gradient(o);
            if (!keeps && p.both_gradients(o, *adds)) {
                continue;
            }
            if (!keeps) {
                p.weight_gradient(o, *adds);
            }
            p.input_gradient(o);
        }
        above = below;
    }
    if (!keeps) {
        end_adding();
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::forward(std::size_t index, loss_sum& loss)
{
    auto const& o = description().ops[index];
    switch (o.kind) {
    case op_kind::embedding:
        by.embedding_forward({.batch = self.shape_.sequences, .length = tokens(), .first = first_token(), .width = o.out_width,
                                       .vocabulary = o.in_width, .tokens = a.tokens.data(), .token_table = parameter(index, 0),
                                       .position_table = parameter(index, 1), .drop = drop(o), .output = slot(o.z[0])});
        break;
    case op_kind::layer_norm:
        by.layer_norm_forward({.rows = rows(), .width = o.in_width, .input = slot(o.x[0]), .gamma = parameter(index, 0),
                                        .beta = parameter(index, 1), .output = slot(o.z[0]), .mean = saved(index),
                                        .rstd = saved(index) + rows()});
        break;
    case op_kind::rms_norm:
        by.rms_norm_forward({.rows = rows(), .width = o.in_width, .input = slot(o.x[0]), .gamma = parameter(index, 0),
                                      .output = slot(o.z[0]), .rstd = saved(index)});
        break;
    case op_kind::residual_rms_norm:
        by.residual_rms_norm_forward({.rows = rows(), .width = o.in_width, .stream = slot(o.x[0]), .branch = slot(o.x[1]),
                                               .drop = drop(o), .gamma = parameter(index, 0), .residual = slot(o.z[0]),
                                               .output = slot(o.z[1]), .rstd = saved(index)});
        break;
    case op_kind::rope: rope(o, slot(o.x[0]), slot(o.z[0]), false); break;
    case op_kind::swiglu:
        by.swiglu_forward({.rows = rows(), .width = o.out_width, .input = slot(o.x[0]), .output = slot(o.z[0])});
        break;
    case op_kind::residual_norm:
        by.residual_norm_forward({.rows = rows(), .width = o.in_width, .stream = slot(o.x[0]), .branch = slot(o.x[1]),
                                           .drop = drop(o), .gamma = parameter(index, 0), .beta = parameter(index, 1),
                                           .residual = slot(o.z[0]), .output = slot(o.z[1]), .mean = saved(index),
                                           .rstd = saved(index) + rows()});
        break;
    case op_kind::residual_add:
        by.residual_add_forward({.rows = rows(), .width = o.in_width, .stream = slot(o.x[0]), .branch = slot(o.x[1]),
                                          .drop = drop(o), .output = slot(o.z[0])});
        break;
    case op_kind::linear:
    case op_kind::linear_gelu:
        by.linear_forward({.rows = rows(), .in = o.in_width, .out = o.out_width, .input = slot(o.x[0]),
                                    .weight = parameter(index, 0), .bias = parameter(index, 1), .output = slot(o.z[0]),
                                    .activated = o.kind == op_kind::linear_gelu ? slot(o.z[1]) : nullptr});
        break;
    case op_kind::unembed:
        by.linear_forward({.rows = rows(), .in = o.in_width, .out = o.out_width, .order = weight_order::out_in,
                                    .input = slot(o.x[0]), .weight = parameter(index, 0), .output = slot(o.z[0])});
        break;
    case op_kind::gelu:
        by.gelu_forward({.count = rows() * o.in_width, .input = slot(o.x[0]), .output = slot(o.z[0])});
        break;
    case op_kind::attention:
        by.attention_forward({.batch = self.shape_.sequences, .length = tokens(), .width = o.out_width,
                                       .heads = o.heads, .kv_heads = o.kv_heads, .qkv = slot(o.x[0]), .before = keys_before(index),
                                       .whole = self.shape_.tokens, .drop = drop(o), .output = slot(o.z[0]),
                                       .log_sum_exp = saved(index)});
        break;
    case op_kind::cross_entropy:
    case op_kind::loss_gradient:
        if (item.training && o.kind == op_kind::loss_gradient) {
            by.cross_entropy_fused({.rows = rows(), .vocabulary = o.in_width, .logits = slot(o.x[0]),
                                             .targets = a.targets.data(), .loss = &loss});
        } else {
            by.cross_entropy_forward({.rows = rows(), .vocabulary = o.in_width, .logits = slot(o.x[0]),
                                               .targets = a.targets.data(),
                                               .log_sum_exp = o.kind == op_kind::cross_entropy ? saved(index) : nullptr, .loss = &loss});
        }
        break;
    }
}

template <class Kernels>
earlier_slices<typename Kernels::storage const> stage_on<Kernels>::pass::keys_before(std::size_t index) const
{
    auto const qkv = self.layout_.slots[layer][static_cast<std::size_t>(description().ops[index].x[0])];
    earlier_slices<storage const> before{.count = item.slice};
    for (std::size_t s = 0; s < a.before.size(); ++s) {
        expects(!a.before[s]->memory.empty(), "the slices before an item are kept as long as the item");
        before.of[s] = at_offset<storage>(a.before[s]->memory, qkv);
    }
    return before;
}

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
gradient_sum_of<dtype::i64> stage_on<Kernels>::pass::target(std::size_t o, std::size_t i, std::function<bool(use_id)> const& adds) const
{
    auto const use = self.op_uses_[layer][o][i];
    if (use.value < 0 || !adds(use)) {
        return {};
    }
    auto& accumulator = self.state_->accumulator(use);
    return {.sums = accumulator.sums.data(), .state = &accumulator.state,
            .contributions = self.state_->contributions(self.tensors_[layer][o][i], self.microbatches_ * self.shape_.slices)};
}

template <class Kernels>
void stage_on<Kernels>::pass::linear_input(std::size_t index, weight_order order)
{
    auto const& o = description().ops[index];
    by.linear_backward_input({.rows = rows(), .in = o.in_width, .out = o.out_width, .order = order,
                                              .weight = parameter(index, 0), .output_gradient = gradient_of(o.z[0]),
                                              .input_gradient = gradient_of(o.x[0]), .accumulate = has_gradient(o.x[0])});
    gave(o.x[0]);
}

template <class Kernels>
void stage_on<Kernels>::pass::linear_weights(std::size_t index, weight_order order, std::function<bool(use_id)> const& adds)
{
    auto const& o = description().ops[index];
    auto const weight = target(index, 0, adds);
    auto const bias = target(index, 1, adds);
    if constexpr (Kernels::has_states) {
        if (weight.sums != nullptr && bias.sums != nullptr) {
            by.linear_backward_parameters({.rows = rows(), .in = o.in_width, .out = o.out_width, .order = order, .input = slot(o.x[0]),
                                           .output_gradient = gradient_of(o.z[0]), .weight_gradient = weight},
                                          bias);
            return;
        }
    }
    if (weight.sums != nullptr) {
        by.linear_backward_weight({.rows = rows(), .in = o.in_width, .out = o.out_width, .order = order,
                                            .input = slot(o.x[0]), .output_gradient = gradient_of(o.z[0]), .weight_gradient = weight});
    }
    if (bias.sums != nullptr) {
        by.linear_backward_bias({.rows = rows(), .out = o.out_width, .output_gradient = gradient_of(o.z[0]), .bias_gradient = bias});
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::norm_weights(std::size_t index, storage const* input, storage const* output_gradient,
                               std::function<bool(use_id)> const& adds)
{
    auto const gamma = target(index, 0, adds);
    auto const beta = target(index, 1, adds);
    if (gamma.sums != nullptr || beta.sums != nullptr) {  // a recovery may have kept one of them
        by.layer_norm_backward_weight({.rows = rows(), .width = description().ops[index].in_width, .input = input,
                                                       .mean = saved(index), .rstd = saved(index) + rows(),
                                                       .output_gradient = output_gradient, .gamma_gradient = gamma, .beta_gradient = beta});
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::rms_weights(std::size_t index, storage const* input, storage const* output_gradient,
                              std::function<bool(use_id)> const& adds)
{
    if (auto const gamma = target(index, 0, adds); gamma.sums != nullptr) {
        by.rms_norm_backward_weight({.rows = rows(), .width = description().ops[index].in_width, .input = input,
                                                .rstd = saved(index), .output_gradient = output_gradient, .gamma_gradient = gamma});
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::rope(op const& o, storage const* from, storage* to, bool back)
{
    auto const kept = o.kv_heads == 0 ? o.heads : o.kv_heads;
    by.rope({.rows = rows(), .length = tokens(), .first = first_token(), .turned = o.heads + kept, .kept = kept,
                        .head_width = head_width(o), .table = self.turns_.at({head_width(o), o.rope_base}).data(), .input = from, .output = to,
                        .back = back});
}

template <class Kernels>
void stage_on<Kernels>::pass::own_gradient(std::size_t index)
{
    if (auto const& o = description().ops[index]; o.kind == op_kind::linear_gelu) {
        by.gelu_backward({.count = rows() * o.out_width, .input = slot(o.z[0]), .output_gradient = gradient_of(o.z[1]),
                                          .input_gradient = gradient_of(o.z[0])});
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
            by.embedding_backward_weight({.batch = self.shape_.sequences, .length = tokens(), .first = first_token(),
                                                          .width = o.out_width, .vocabulary = o.in_width, .tokens = a.tokens.data(),
                                                          .output_gradient = gradient_of(o.z[0]), .drop = drop(o),
                                                          .token_gradient = table, .position_gradient = positions});
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
bool stage_on<Kernels>::pass::both_gradients(std::size_t index, std::function<bool(use_id)> const& adds)
{
    if constexpr (Kernels::has_states) {
        auto const& o = description().ops[index];
        auto const bypass = [&](int s) { return has_gradient(s) ? gradient_of(s) : nullptr; };
        switch (o.kind) {
        case op_kind::layer_norm:
            by.layer_norm_backward({.rows = rows(), .width = o.in_width, .input = slot(o.x[0]), .gamma = parameter(index, 0), .mean = saved(index),
                                    .rstd = saved(index) + rows(), .output_gradient = gradient_of(o.z[0]), .bypass_gradient = bypass(o.x[0]),
                                    .input_gradient = gradient_of(o.x[0])},
                                   target(index, 0, adds), target(index, 1, adds));
            break;
        case op_kind::rms_norm:
            by.rms_norm_backward({.rows = rows(), .width = o.in_width, .input = slot(o.x[0]), .gamma = parameter(index, 0), .rstd = saved(index),
                                  .output_gradient = gradient_of(o.z[0]), .bypass_gradient = bypass(o.x[0]), .input_gradient = gradient_of(o.x[0])},
                                 target(index, 0, adds));
            break;
        case op_kind::residual_norm:
            by.residual_norm_backward({.rows = rows(), .width = o.in_width, .residual = slot(o.z[0]), .gamma = parameter(index, 0), .mean = saved(index),
                                       .rstd = saved(index) + rows(), .output_gradient = gradient_of(o.z[1]), .bypass_gradient = bypass(o.z[0]), .drop = drop(o),
                                       .stream_gradient = gradient_of(o.x[0]), .branch_gradient = gradient_of(o.x[1])},
                                      target(index, 0, adds), target(index, 1, adds));
            gave(o.x[1]);
            break;
        case op_kind::residual_rms_norm:
            by.residual_rms_norm_backward({.rows = rows(), .width = o.in_width, .residual = slot(o.z[0]), .gamma = parameter(index, 0), .rstd = saved(index),
                                           .output_gradient = gradient_of(o.z[1]), .bypass_gradient = bypass(o.z[0]), .drop = drop(o),
                                           .stream_gradient = gradient_of(o.x[0]), .branch_gradient = gradient_of(o.x[1])},
                                          target(index, 0, adds));
            gave(o.x[1]);
            break;
        default: return false;
        }
        gave(o.x[0]);
        return true;
    } else {
        return false;
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::input_gradient(std::size_t index)
{
    auto const& o = description().ops[index];
    switch (o.kind) {
    case op_kind::embedding: break;
    case op_kind::layer_norm:
        by.layer_norm_backward_input({.rows = rows(), .width = o.in_width, .input = slot(o.x[0]), .gamma = parameter(index, 0),
                                               .mean = saved(index), .rstd = saved(index) + rows(),
                                               .output_gradient = gradient_of(o.z[0]),
                                               .bypass_gradient = has_gradient(o.x[0]) ? gradient_of(o.x[0]) : nullptr,
                                               .input_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::rms_norm:
        by.rms_norm_backward_input({.rows = rows(), .width = o.in_width, .input = slot(o.x[0]), .gamma = parameter(index, 0),
                                             .rstd = saved(index), .output_gradient = gradient_of(o.z[0]),
                                             .bypass_gradient = has_gradient(o.x[0]) ? gradient_of(o.x[0]) : nullptr,
                                             .input_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::residual_rms_norm:
        by.residual_rms_norm_backward({.rows = rows(), .width = o.in_width, .residual = slot(o.z[0]), .gamma = parameter(index, 0),
                                                .rstd = saved(index), .output_gradient = gradient_of(o.z[1]),
                                                .bypass_gradient = has_gradient(o.z[0]) ? gradient_of(o.z[0]) : nullptr, .drop = drop(o),
                                                .stream_gradient = gradient_of(o.x[0]), .branch_gradient = gradient_of(o.x[1])});
        gave(o.x[0]);
        gave(o.x[1]);
        break;
    case op_kind::rope:
        rope(o, gradient_of(o.z[0]), gradient_of(o.x[0]), true);
        gave(o.x[0]);
        break;
    case op_kind::swiglu:
        by.swiglu_backward({.rows = rows(), .width = o.out_width, .input = slot(o.x[0]), .output_gradient = gradient_of(o.z[0]),
                                     .input_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::residual_norm:
        by.residual_norm_backward({.rows = rows(), .width = o.in_width, .residual = slot(o.z[0]), .gamma = parameter(index, 0),
                                            .mean = saved(index), .rstd = saved(index) + rows(),
                                            .output_gradient = gradient_of(o.z[1]),
                                            .bypass_gradient = has_gradient(o.z[0]) ? gradient_of(o.z[0]) : nullptr, .drop = drop(o),
                                            .stream_gradient = gradient_of(o.x[0]), .branch_gradient = gradient_of(o.x[1])});
        gave(o.x[0]);
        gave(o.x[1]);
        break;
    case op_kind::residual_add:
        by.residual_add_backward({.rows = rows(), .width = o.in_width, .output_gradient = gradient_of(o.z[0]), .drop = drop(o),
                                           .branch_gradient = gradient_of(o.x[1])});
        by.copy(gradient_of(o.x[0]), gradient_of(o.z[0]), static_cast<std::size_t>(rows() * o.in_width) * sizeof(storage));
        gave(o.x[0]);
        gave(o.x[1]);
        break;
    case op_kind::linear:
    case op_kind::linear_gelu: linear_input(index, weight_order::in_out); break;
    case op_kind::unembed: linear_input(index, weight_order::out_in); break;
    case op_kind::gelu:
        by.gelu_backward({.count = rows() * o.in_width, .input = slot(o.x[0]), .output_gradient = gradient_of(o.z[0]),
                                   .input_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::attention:
        by.attention_backward({.batch = self.shape_.sequences, .length = tokens(), .width = o.out_width,
                                        .heads = o.heads, .kv_heads = o.kv_heads, .qkv = slot(o.x[0]), .before = keys_before(index),
                                        .whole = self.shape_.tokens, .output = slot(o.z[0]), .log_sum_exp = saved(index),
                                        .output_gradient = gradient_of(o.z[0]), .drop = drop(o), .qkv_gradient = gradient_of(o.x[0]),
                                        .kv_gradient_later = item.slice + 1 < self.shape_.slices ? at_offset<storage>(a.memory, key_gradients(index)) : nullptr,
                                        .kv_gradient_before = key_gradients_before(index)});
        gave(o.x[0]);
        break;
    case op_kind::cross_entropy:
        by.cross_entropy_backward({.rows = rows(), .vocabulary = o.in_width, .logits = slot(o.x[0]), .targets = a.targets.data(),
                                            .log_sum_exp = saved(index), .logits_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::loss_gradient:
        gradient[static_cast<std::size_t>(o.x[0])] = slot(o.x[0]);  // forward left it in place of the logits
        gave(o.x[0]);
        break;
    }
}

}  // namespace rheo::inline v0
