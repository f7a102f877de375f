// SPDX-License-Identifier: Apache-2.0
#include "runtime/stage.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/attention/attention.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/gelu/gelu.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/linear/linear.hpp"
#include "kernels/residual_add/residual_add.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "rheo/model/state.hpp"

namespace rheo::inline v0 {

activation_layout::activation_layout(std::span<layer_description const> layers, microbatch_shape shape)
    : rows{rheo::rows(shape)}
{
    auto const take = [&](std::int64_t count) {
        auto const offset = static_cast<std::ptrdiff_t>(floats);
        floats += static_cast<std::size_t>((count + 15) / 16 * 16);  // rows of vectors begin on cache lines
        return offset;
    };
    std::ptrdiff_t given = -1;  // where the layer before left its output
    for (auto const& layer : layers) {
        std::vector<std::ptrdiff_t> places;
        for (std::size_t s = 0; s < layer.slot_widths.size(); ++s) {
            places.push_back(s == 0 && given >= 0 ? given : take(layer.slot_widths[s] * rows));
        }
        std::vector<std::ptrdiff_t> kept;
        for (auto const& o : layer.ops) {
            kept.push_back(take(saved_floats(o, shape)));
        }
        given = layer.output == no_slot ? -1 : places[static_cast<std::size_t>(layer.output)];
        slots.push_back(std::move(places));
        saved.push_back(std::move(kept));
    }
}

stage::stage(std::span<layer_description const> layers, layer_id first, microbatch_shape shape, int microbatches,
             resident_state& state, tile_pool& pool)
    : layers_{layers}, first_{first}, shape_{shape}, microbatches_{microbatches}, state_{&state}, pool_{&pool}, layout_{layers, shape}
{
    auto const& info = state.info();
    auto const find = [&](layer_id layer, int parameter) {
        for (std::size_t u = 0; u < info.uses.size(); ++u) {
            use_id const use{static_cast<std::int32_t>(u)};
            bool const taken = std::find(uses_.begin(), uses_.end(), use) != uses_.end();  // by another operation on the same parameter
            if (info.uses[u].layer == layer && info.uses[u].parameter == parameter && !taken) {
                return use;
            }
        }
        throw precondition_error{"a stage was given a layer that is not in the collection"};
    };
    std::int64_t largest = 0;
    std::int64_t widest = 0;
    for (std::size_t l = 0; l < layers.size(); ++l) {
        layer_id const id{first.value + static_cast<int>(l)};
        std::int64_t floats = 0;
        for (auto const width : layers[l].slot_widths) {
            floats += width * layout_.rows;
            widest = std::max<std::int64_t>(widest, width);
        }
        largest = std::max(largest, floats);
        tensors_.emplace_back();
        op_uses_.emplace_back();
        for (auto const& o : layers[l].ops) {
            std::array<tensor_id, 2> tensors{tensor_id{-1}, tensor_id{-1}};
            std::array<use_id, 2> uses{use_id{-1}, use_id{-1}};
            for (std::size_t i = 0; i < 2; ++i) {
                if (o.parameters[i] != no_parameter) {
                    uses[i] = find(id, o.parameters[i]);
                    tensors[i] = info.uses[at(uses[i])].tensor;
                    uses_.push_back(uses[i]);
                }
            }
            if (o.kind == op_kind::cross_entropy || o.kind == op_kind::loss_gradient) {
                loss_use_ = find(id, no_parameter);
            }
            tensors_.back().push_back(tensors);
            op_uses_.back().push_back(uses);
        }
    }
    std::sort(uses_.begin(), uses_.end());
    gradients_.resize(static_cast<std::size_t>(largest));
    boundaries_[0].resize(static_cast<std::size_t>(widest * layout_.rows));
    boundaries_[1].resize(boundaries_[0].size());
}

float* stage::input(activation& a) const
{
    return layers_.front().in_width == 0 ? nullptr : a.memory.get() + layout_.slots.front().front();
}

float const* stage::output(activation const& a) const
{
    auto const& last = layers_.back();
    return last.output == no_slot ? nullptr : a.memory.get() + layout_.slots.back()[static_cast<std::size_t>(last.output)];
}

std::size_t stage::input_floats() const { return static_cast<std::size_t>(layers_.front().in_width * layout_.rows); }
std::size_t stage::output_floats() const { return static_cast<std::size_t>(layers_.back().out_width * layout_.rows); }

float const* stage::logits(activation const& a) const
{
    auto const& o = layers_.back().ops.back();
    return a.memory.get() + layout_.slots.back()[static_cast<std::size_t>(o.x[0])];
}

/// One layer of one microbatch: turns slots, saved values and parameters into pointers.
struct stage::pass {
    stage& self;
    activation& a;
    stage_item const& item;
    std::size_t layer;
    std::vector<float*> gradient{};  ///< slot -> its gradient's memory
    std::vector<char> has{};         ///< slot -> something has been written there

    layer_description const& description() const { return self.layers_[layer]; }
    float* slot(int s) const { return a.memory.get() + self.layout_.slots[layer][static_cast<std::size_t>(s)]; }
    float* saved(std::size_t o) const { return a.memory.get() + self.layout_.saved[layer][o]; }
    float const* parameter(std::size_t o, std::size_t i) const
    {
        auto const t = self.tensors_[layer][o][i];
        return t.value < 0 ? nullptr : self.state_->tensor(t).parameter.data();
    }
    dropout drop(op const& o) const
    {
        return {.probability = item.training ? o.dropout_per_mille / 1000.0 : 0.0,
                .key = {item.seed, item.step, item.microbatch, layer_id{self.first_.value + static_cast<int>(layer)}, o.id}};
    }
    std::int64_t rows() const { return self.layout_.rows; }

    void forward(std::size_t index, loss_sum& loss);
    void backward(std::size_t index, std::function<bool(use_id)> const& adds);

    float* gradient_of(int s) { return gradient[static_cast<std::size_t>(s)]; }
    bool has_gradient(int s) const { return has[static_cast<std::size_t>(s)] != 0; }
    void gave(int s) { has[static_cast<std::size_t>(s)] = 1; }

    /// Where the contribution of this microbatch to a use goes; no sums when it is not wanted.
    gradient_sum_of<dtype::i64> target(std::size_t o, std::size_t i, std::function<bool(use_id)> const& adds) const
    {
        auto const use = self.op_uses_[layer][o][i];
        if (use.value < 0 || !adds(use)) {
            return {};
        }
        auto& accumulator = self.state_->accumulator(use);
        return {.sums = accumulator.sums.data(), .state = &accumulator.state,
                .contributions = self.state_->contributions(self.tensors_[layer][o][i], self.microbatches_)};
    }

    void linear_backward(std::size_t index, float const* output_gradient, weight_order order, std::function<bool(use_id)> const& adds);
    void norm_weights(std::size_t index, float const* input, float const* output_gradient, std::function<bool(use_id)> const& adds);
};

void stage::pass::forward(std::size_t index, loss_sum& loss)
{
    auto const& o = description().ops[index];
    auto& pool = *self.pool_;
    switch (o.kind) {
    case op_kind::embedding:
        host::embedding_forward(pool, {.batch = self.shape_.sequences, .length = self.shape_.tokens, .width = o.out_width,
                                       .vocabulary = o.in_width, .tokens = a.tokens.data(), .token_table = parameter(index, 0),
                                       .position_table = parameter(index, 1), .drop = drop(o), .output = slot(o.z[0])});
        break;
    case op_kind::layer_norm:
        host::layer_norm_forward(pool, {.rows = rows(), .width = o.in_width, .input = slot(o.x[0]), .gamma = parameter(index, 0),
                                        .beta = parameter(index, 1), .output = slot(o.z[0]), .mean = saved(index),
                                        .rstd = saved(index) + rows()});
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
        host::attention_forward(pool, {.batch = self.shape_.sequences, .length = self.shape_.tokens, .width = o.out_width,
                                       .heads = o.heads, .qkv = slot(o.x[0]), .drop = drop(o), .output = slot(o.z[0]),
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

void stage::pass::linear_backward(std::size_t index, float const* output_gradient, weight_order order,
                                  std::function<bool(use_id)> const& adds)
{
    auto const& o = description().ops[index];
    auto& pool = *self.pool_;
    if (auto const weight = target(index, 0, adds); weight.sums != nullptr) {
        host::linear_backward_weight(pool, {.rows = rows(), .in = o.in_width, .out = o.out_width, .order = order,
                                            .input = slot(o.x[0]), .output_gradient = output_gradient, .weight_gradient = weight});
    }
    if (auto const bias = target(index, 1, adds); bias.sums != nullptr) {
        host::linear_backward_bias(pool, {.rows = rows(), .out = o.out_width, .output_gradient = output_gradient, .bias_gradient = bias});
    }
    host::linear_backward_input(pool, {.rows = rows(), .in = o.in_width, .out = o.out_width, .order = order,
                                       .weight = parameter(index, 0), .output_gradient = output_gradient,
                                       .input_gradient = gradient_of(o.x[0]), .accumulate = has_gradient(o.x[0])});
    gave(o.x[0]);
}

void stage::pass::norm_weights(std::size_t index, float const* input, float const* output_gradient,
                               std::function<bool(use_id)> const& adds)
{
    auto const gamma = target(index, 0, adds);
    auto const beta = target(index, 1, adds);
    if (gamma.sums != nullptr || beta.sums != nullptr) {  // a recovery may have kept one of them
        host::layer_norm_backward_weight(*self.pool_, {.rows = rows(), .width = description().ops[index].in_width, .input = input,
                                                       .mean = saved(index), .rstd = saved(index) + rows(),
                                                       .output_gradient = output_gradient, .gamma_gradient = gamma, .beta_gradient = beta});
    }
}

void stage::pass::backward(std::size_t index, std::function<bool(use_id)> const& adds)
{
    auto const& o = description().ops[index];
    auto& pool = *self.pool_;
    switch (o.kind) {
    case op_kind::embedding: {
        auto const table = target(index, 0, adds);
        auto const positions = target(index, 1, adds);
        if (table.sums != nullptr || positions.sums != nullptr) {
            host::embedding_backward_weight(pool, {.batch = self.shape_.sequences, .length = self.shape_.tokens, .width = o.out_width,
                                                   .vocabulary = o.in_width, .tokens = a.tokens.data(),
                                                   .output_gradient = gradient_of(o.z[0]), .drop = drop(o),
                                                   .token_gradient = table, .position_gradient = positions});
        }
        break;
    }
    case op_kind::layer_norm:
        norm_weights(index, slot(o.x[0]), gradient_of(o.z[0]), adds);
        host::layer_norm_backward_input(pool, {.rows = rows(), .width = o.in_width, .input = slot(o.x[0]), .gamma = parameter(index, 0),
                                               .mean = saved(index), .rstd = saved(index) + rows(),
                                               .output_gradient = gradient_of(o.z[0]),
                                               .bypass_gradient = has_gradient(o.x[0]) ? gradient_of(o.x[0]) : nullptr,
                                               .input_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::residual_norm:
        norm_weights(index, slot(o.z[0]), gradient_of(o.z[1]), adds);
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
    case op_kind::linear: linear_backward(index, gradient_of(o.z[0]), weight_order::in_out, adds); break;
    case op_kind::unembed: linear_backward(index, gradient_of(o.z[0]), weight_order::out_in, adds); break;
    case op_kind::linear_gelu:
        host::gelu_backward(pool, {.count = rows() * o.out_width, .input = slot(o.z[0]), .output_gradient = gradient_of(o.z[1]),
                                   .input_gradient = gradient_of(o.z[0])});
        linear_backward(index, gradient_of(o.z[0]), weight_order::in_out, adds);
        break;
    case op_kind::gelu:
        host::gelu_backward(pool, {.count = rows() * o.in_width, .input = slot(o.x[0]), .output_gradient = gradient_of(o.z[0]),
                                   .input_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::attention:
        host::attention_backward(pool, {.batch = self.shape_.sequences, .length = self.shape_.tokens, .width = o.out_width,
                                        .heads = o.heads, .qkv = slot(o.x[0]), .output = slot(o.z[0]), .log_sum_exp = saved(index),
                                        .output_gradient = gradient_of(o.z[0]), .drop = drop(o), .qkv_gradient = gradient_of(o.x[0])});
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

void stage::forward(activation& a, stage_item const& item, loss_sum& loss)
{
    for (std::size_t l = 0; l < layers_.size(); ++l) {
        pass p{*this, a, item, l};
        for (std::size_t o = 0; o < layers_[l].ops.size(); ++o) {
            p.forward(o, loss);
        }
    }
}

void stage::backward(activation& a, stage_item const& item, layer_id lowest, float* output_gradient, float* input_gradient,
                     std::function<bool(use_id)> const& adds)
{
    // The gradient that enters a layer may be written over.
    float* above = output_gradient;
    auto const stop = static_cast<std::size_t>(std::max(0, lowest.value - first_.value));
    for (std::size_t l = layers_.size(); l-- > stop;) {
        pass p{*this, a, item, l};
        auto const& layer = layers_[l];
        std::size_t next = 0;
        for (auto const width : layer.slot_widths) {
            p.gradient.push_back(gradients_.data() + next);
            p.has.push_back(0);
            next += static_cast<std::size_t>(width * layout_.rows);
        }
        if (layer.output != no_slot) {
            p.gradient[static_cast<std::size_t>(layer.output)] = above;
            p.gave(layer.output);
        }
        float* below = l == stop && input_gradient != nullptr ? input_gradient : boundaries_[l % 2].data();
        if (layer.in_width != 0) {
            p.gradient[0] = below;
        }
        for (std::size_t o = layer.ops.size(); o-- > 0;) {
            p.backward(o, adds);
        }
        above = below;
    }
}

}  // namespace rheo::inline v0
