// SPDX-License-Identifier: Apache-2.0
#include "runtime/stage_pass.hpp"

#include <cstring>

#include "kernels/attention/attention.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/gelu/gelu.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/linear/linear.hpp"
#include "kernels/residual_add/residual_add.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "kernels/residual_rms_norm/residual_rms_norm.hpp"
#include "kernels/rms_norm/rms_norm.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/swiglu/swiglu.hpp"

namespace rheo::inline v0 {

void stage::pass::forward(std::size_t index, loss_sum& loss)
{
    auto const& o = description().ops[index];
    auto& pool = this->pool();
    switch (o.kind) {
    case op_kind::embedding:
        host::embedding_forward(pool, {.batch = self.shape_.sequences, .length = tokens(), .first = first_token(), .width = o.out_width,
                                       .vocabulary = o.in_width, .tokens = a.tokens.data(), .token_table = parameter(index, 0),
                                       .position_table = parameter(index, 1), .drop = drop(o), .output = slot(o.z[0])});
        break;
    case op_kind::layer_norm:
        host::layer_norm_forward(pool, {.rows = rows(), .width = o.in_width, .input = slot(o.x[0]), .gamma = parameter(index, 0),
                                        .beta = parameter(index, 1), .output = slot(o.z[0]), .mean = saved(index),
                                        .rstd = saved(index) + rows()});
        break;
    case op_kind::rms_norm:
        host::rms_norm_forward(pool, {.rows = rows(), .width = o.in_width, .input = slot(o.x[0]), .gamma = parameter(index, 0),
                                      .output = slot(o.z[0]), .rstd = saved(index)});
        break;
    case op_kind::residual_rms_norm:
        host::residual_rms_norm_forward(pool, {.rows = rows(), .width = o.in_width, .stream = slot(o.x[0]), .branch = slot(o.x[1]),
                                               .drop = drop(o), .gamma = parameter(index, 0), .residual = slot(o.z[0]),
                                               .output = slot(o.z[1]), .rstd = saved(index)});
        break;
    case op_kind::rope: rope(o, slot(o.x[0]), slot(o.z[0]), false); break;
    case op_kind::swiglu:
        host::swiglu_forward(pool, {.rows = rows(), .width = o.out_width, .input = slot(o.x[0]), .output = slot(o.z[0])});
        break;
    case op_kind::residual_norm:
        host::residual_norm_forward(pool, {.rows = rows(), .width = o.in_width, .stream = slot(o.x[0]), .branch = slot(o.x[1]),
                                           .drop = drop(o), .gamma = parameter(index, 0), .beta = parameter(index, 1),
                                           .residual = slot(o.z[0]), .output = slot(o.z[1]), .mean = saved(index),
                                           .rstd = saved(index) + rows()});
        break;
    case op_kind::residual_add:
        host::residual_add_forward(pool, {.rows = rows(), .width = o.in_width, .stream = slot(o.x[0]), .branch = slot(o.x[1]),
                                          .drop = drop(o), .output = slot(o.z[0])});
        break;
    case op_kind::linear:
    case op_kind::linear_gelu:
        host::linear_forward(pool, {.rows = rows(), .in = o.in_width, .out = o.out_width, .input = slot(o.x[0]),
                                    .weight = parameter(index, 0), .bias = parameter(index, 1), .output = slot(o.z[0]),
                                    .activated = o.kind == op_kind::linear_gelu ? slot(o.z[1]) : nullptr});
        break;
    case op_kind::unembed:
        host::linear_forward(pool, {.rows = rows(), .in = o.in_width, .out = o.out_width, .order = weight_order::out_in,
                                    .input = slot(o.x[0]), .weight = parameter(index, 0), .output = slot(o.z[0])});
        break;
    case op_kind::gelu:
        host::gelu_forward(pool, {.count = rows() * o.in_width, .input = slot(o.x[0]), .output = slot(o.z[0])});
        break;
    case op_kind::attention:
        host::attention_forward(pool, {.batch = self.shape_.sequences, .length = tokens(), .width = o.out_width,
                                       .heads = o.heads, .kv_heads = o.kv_heads, .qkv = slot(o.x[0]), .before = keys_before(index),
                                       .whole = self.shape_.tokens, .drop = drop(o), .output = slot(o.z[0]),
                                       .log_sum_exp = saved(index)});
        break;
    case op_kind::cross_entropy:
    case op_kind::loss_gradient:
        if (item.training && o.kind == op_kind::loss_gradient) {
            host::cross_entropy_fused(pool, {.rows = rows(), .vocabulary = o.in_width, .logits = slot(o.x[0]),
                                             .targets = a.targets.data(), .loss = &loss});
        } else {
            host::cross_entropy_forward(pool, {.rows = rows(), .vocabulary = o.in_width, .logits = slot(o.x[0]),
                                               .targets = a.targets.data(),
                                               .log_sum_exp = o.kind == op_kind::cross_entropy ? saved(index) : nullptr, .loss = &loss});
        }
        break;
    }
}

earlier_slices<float const> stage::pass::keys_before(std::size_t index) const
{
    auto const qkv = self.layout_.slots[layer][static_cast<std::size_t>(description().ops[index].x[0])];
    earlier_slices<float const> before{.count = item.slice};
    for (std::size_t s = 0; s < a.before.size(); ++s) {
        expects(a.before[s]->memory != nullptr, "the slices before an item are kept as long as the item");
        before.of[s] = a.before[s]->memory.get() + qkv;
    }
    return before;
}

earlier_slices<float> stage::pass::key_gradients_before(std::size_t index) const
{
    earlier_slices<float> before{.count = item.slice};
    for (std::size_t s = 0; s < a.before.size(); ++s) {
        before.of[s] = a.before[s]->memory.get() + key_gradients(index);
    }
    return before;
}

gradient_sum_of<dtype::i64> stage::pass::target(std::size_t o, std::size_t i, std::function<bool(use_id)> const& adds) const
{
    auto const use = self.op_uses_[layer][o][i];
    if (use.value < 0 || !adds(use)) {
        return {};
    }
    auto& accumulator = self.state_->accumulator(use);
    return {.sums = accumulator.sums.data(), .state = &accumulator.state,
            .contributions = self.state_->contributions(self.tensors_[layer][o][i], self.microbatches_ * self.shape_.slices)};
}

void stage::pass::linear_input(std::size_t index, weight_order order)
{
    auto const& o = description().ops[index];
    host::linear_backward_input(pool(), {.rows = rows(), .in = o.in_width, .out = o.out_width, .order = order,
                                              .weight = parameter(index, 0), .output_gradient = gradient_of(o.z[0]),
                                              .input_gradient = gradient_of(o.x[0]), .accumulate = has_gradient(o.x[0])});
    gave(o.x[0]);
}

void stage::pass::linear_weights(std::size_t index, weight_order order, std::function<bool(use_id)> const& adds)
{
    auto const& o = description().ops[index];
    auto& pool = this->pool();
    if (auto const weight = target(index, 0, adds); weight.sums != nullptr) {
        host::linear_backward_weight(pool, {.rows = rows(), .in = o.in_width, .out = o.out_width, .order = order,
                                            .input = slot(o.x[0]), .output_gradient = gradient_of(o.z[0]), .weight_gradient = weight});
    }
    if (auto const bias = target(index, 1, adds); bias.sums != nullptr) {
        host::linear_backward_bias(pool, {.rows = rows(), .out = o.out_width, .output_gradient = gradient_of(o.z[0]), .bias_gradient = bias});
    }
}

void stage::pass::norm_weights(std::size_t index, float const* input, float const* output_gradient,
                               std::function<bool(use_id)> const& adds)
{
    auto const gamma = target(index, 0, adds);
    auto const beta = target(index, 1, adds);
    if (gamma.sums != nullptr || beta.sums != nullptr) {  // a recovery may have kept one of them
        host::layer_norm_backward_weight(pool(), {.rows = rows(), .width = description().ops[index].in_width, .input = input,
                                                       .mean = saved(index), .rstd = saved(index) + rows(),
                                                       .output_gradient = output_gradient, .gamma_gradient = gamma, .beta_gradient = beta});
    }
}

void stage::pass::rms_weights(std::size_t index, float const* input, float const* output_gradient,
                              std::function<bool(use_id)> const& adds)
{
    if (auto const gamma = target(index, 0, adds); gamma.sums != nullptr) {
        host::rms_norm_backward_weight(pool(), {.rows = rows(), .width = description().ops[index].in_width, .input = input,
                                                .rstd = saved(index), .output_gradient = output_gradient, .gamma_gradient = gamma});
    }
}

void stage::pass::rope(op const& o, float const* from, float* to, bool back)
{
    auto const kept = o.kv_heads == 0 ? o.heads : o.kv_heads;
    host::rope(pool(), {.rows = rows(), .length = tokens(), .first = first_token(), .turned = o.heads + kept, .kept = kept,
                        .head_width = head_width(o), .table = self.turns_.at({head_width(o), o.rope_base}).data(), .input = from, .output = to,
                        .back = back});
}

void stage::pass::own_gradient(std::size_t index)
{
    if (auto const& o = description().ops[index]; o.kind == op_kind::linear_gelu) {
        host::gelu_backward(pool(), {.count = rows() * o.out_width, .input = slot(o.z[0]), .output_gradient = gradient_of(o.z[1]),
                                          .input_gradient = gradient_of(o.z[0])});
    }
}

void stage::pass::weight_gradient(std::size_t index, std::function<bool(use_id)> const& adds)
{
    auto const& o = description().ops[index];
    switch (o.kind) {
    case op_kind::embedding: {
        auto const table = target(index, 0, adds);
        auto const positions = target(index, 1, adds);
        if (table.sums != nullptr || positions.sums != nullptr) {
            host::embedding_backward_weight(pool(), {.batch = self.shape_.sequences, .length = tokens(), .first = first_token(),
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

void stage::pass::input_gradient(std::size_t index)
{
    auto const& o = description().ops[index];
    auto& pool = this->pool();
    switch (o.kind) {
    case op_kind::embedding: break;
    case op_kind::layer_norm:
        host::layer_norm_backward_input(pool, {.rows = rows(), .width = o.in_width, .input = slot(o.x[0]), .gamma = parameter(index, 0),
                                               .mean = saved(index), .rstd = saved(index) + rows(),
                                               .output_gradient = gradient_of(o.z[0]),
                                               .bypass_gradient = has_gradient(o.x[0]) ? gradient_of(o.x[0]) : nullptr,
                                               .input_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::rms_norm:
        host::rms_norm_backward_input(pool, {.rows = rows(), .width = o.in_width, .input = slot(o.x[0]), .gamma = parameter(index, 0),
                                             .rstd = saved(index), .output_gradient = gradient_of(o.z[0]),
                                             .bypass_gradient = has_gradient(o.x[0]) ? gradient_of(o.x[0]) : nullptr,
                                             .input_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::residual_rms_norm:
        host::residual_rms_norm_backward(pool, {.rows = rows(), .width = o.in_width, .residual = slot(o.z[0]), .gamma = parameter(index, 0),
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
        host::swiglu_backward(pool, {.rows = rows(), .width = o.out_width, .input = slot(o.x[0]), .output_gradient = gradient_of(o.z[0]),
                                     .input_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::residual_norm:
        host::residual_norm_backward(pool, {.rows = rows(), .width = o.in_width, .residual = slot(o.z[0]), .gamma = parameter(index, 0),
                                            .mean = saved(index), .rstd = saved(index) + rows(),
                                            .output_gradient = gradient_of(o.z[1]),
                                            .bypass_gradient = has_gradient(o.z[0]) ? gradient_of(o.z[0]) : nullptr, .drop = drop(o),
                                            .stream_gradient = gradient_of(o.x[0]), .branch_gradient = gradient_of(o.x[1])});
        gave(o.x[0]);
        gave(o.x[1]);
        break;
    case op_kind::residual_add:
        host::residual_add_backward(pool, {.rows = rows(), .width = o.in_width, .output_gradient = gradient_of(o.z[0]), .drop = drop(o),
                                           .branch_gradient = gradient_of(o.x[1])});
        std::memcpy(gradient_of(o.x[0]), gradient_of(o.z[0]), static_cast<std::size_t>(rows() * o.in_width) * sizeof(float));
        gave(o.x[0]);
        gave(o.x[1]);
        break;
    case op_kind::linear:
    case op_kind::linear_gelu: linear_input(index, weight_order::in_out); break;
    case op_kind::unembed: linear_input(index, weight_order::out_in); break;
    case op_kind::gelu:
        host::gelu_backward(pool, {.count = rows() * o.in_width, .input = slot(o.x[0]), .output_gradient = gradient_of(o.z[0]),
                                   .input_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::attention:
        host::attention_backward(pool, {.batch = self.shape_.sequences, .length = tokens(), .width = o.out_width,
                                        .heads = o.heads, .kv_heads = o.kv_heads, .qkv = slot(o.x[0]), .before = keys_before(index),
                                        .whole = self.shape_.tokens, .output = slot(o.z[0]), .log_sum_exp = saved(index),
                                        .output_gradient = gradient_of(o.z[0]), .drop = drop(o), .qkv_gradient = gradient_of(o.x[0]),
                                        .kv_gradient_later = item.slice + 1 < self.shape_.slices ? a.memory.get() + key_gradients(index) : nullptr,
                                        .kv_gradient_before = key_gradients_before(index)});
        gave(o.x[0]);
        break;
    case op_kind::cross_entropy:
        host::cross_entropy_backward(pool, {.rows = rows(), .vocabulary = o.in_width, .logits = slot(o.x[0]), .targets = a.targets.data(),
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
