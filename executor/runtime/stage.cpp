// SPDX-License-Identifier: Apache-2.0
#include "runtime/stage.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/rope/rope.hpp"
#include "rheo/model/state.hpp"
#include "runtime/stage_pass.hpp"

namespace rheo::inline v0 {

namespace {

bytes bytes_of(std::size_t floats) { return {static_cast<std::int64_t>(floats * sizeof(float))}; }

}  // namespace

stage::stage(std::span<layer_description const> layers, layer_id first, microbatch_shape shape, int microbatches,
             resident_state& state, tile_pool& pool)
    : layers_{layers}, first_{first}, shape_{shape}, microbatches_{microbatches}, state_{&state}, pool_{&pool}, layout_{layers, shape}
{
    expects(shape.slices >= 1 && shape.slices <= most_slices && shape.tokens % shape.slices == 0, "slices divide the tokens of a sequence");
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
            if (o.kind == op_kind::rope) {
                if (auto& table = turns_[{head_width(o), o.rope_base}]; table.empty()) {
                    table.resize(static_cast<std::size_t>(shape.tokens * head_width(o)));
                    fill_rope_table(shape.tokens, head_width(o), o.rope_base, table.data());
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
    return layers_.front().in_width == 0 ? nullptr : a.input.get();
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

void stage::reserve(activation& a)
{
    if (a.memory == nullptr) {
        a.memory = regions_.lend(layout_.memory_floats);
        meter_->add(bytes_of(layout_.memory_floats));
    }
    if (!std::exchange(a.holds_input, true)) {
        meter_->add(bytes_of(layout_.input_floats));
    }
}

void stage::forward(activation& a, stage_item const& item, loss_sum& loss)
{
    expects(item.slice >= 0 && item.slice < shape_.slices && a.before.size() == static_cast<std::size_t>(item.slice),
            "a slice comes after all slices before it");
    reserve(a);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
        pass p{*this, a, item, l};
        for (std::size_t o = 0; o < layers_[l].ops.size(); ++o) {
            p.forward(o, loss);
        }
    }
}

void stage::evict(activation& a)
{
    expects(a.memory != nullptr, "only an activation that is there can be evicted");
    regions_.take_back(std::move(a.memory));
    meter_->add(bytes{} - bytes_of(layout_.memory_floats));
}

void stage::recompute(activation& a, stage_item const& item)
{
    expects(a.memory == nullptr && a.holds_input, "only an evicted activation is computed again");
    loss_sum counted;  // in the forward
    forward(a, item, counted);
}

void stage::release(activation& a)
{
    if (a.memory != nullptr) {
        evict(a);
    }
    if (std::exchange(a.holds_input, false)) {
        meter_->add(bytes{} - bytes_of(layout_.input_floats));
    }
    if (a.gradients != nullptr) {
        gradient_regions_.take_back(std::move(a.gradients));
        meter_->add(bytes{} - bytes_of(layout_.gradient_floats));
    }
}

void stage::backward(activation& a, stage_item const& item, layer_id lowest, float* output_gradient, float* input_gradient,
                     std::function<bool(use_id)> const& adds)
{
    descend(a, item, lowest, output_gradient, input_gradient, &adds);
    release(a);
}

void stage::input_gradient(activation& a, stage_item const& item, layer_id lowest, float* output_gradient, float* input_gradient)
{
    if (a.gradients == nullptr) {
        a.gradients = gradient_regions_.lend(layout_.gradient_floats);
        meter_->add(bytes_of(layout_.gradient_floats));
    }
    descend(a, item, lowest, output_gradient, input_gradient, nullptr);
}

void stage::weight_gradient(activation& a, stage_item const& item, layer_id lowest, std::function<bool(use_id)> const& adds)
{
    expects(a.gradients != nullptr, "a weight gradient comes after the input gradient of its microbatch");
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
    release(a);
}

std::size_t stage::depth_of(layer_id lowest) const { return static_cast<std::size_t>(std::max(0, lowest.value - first_.value)); }

void stage::descend(activation& a, stage_item const& item, layer_id lowest, float* output_gradient, float* input_gradient,
                    std::function<bool(use_id)> const* adds)
{
    bool const keeps = adds == nullptr;
    // The gradient that enters a layer may be written over.
    float* above = output_gradient;
    auto const stop = depth_of(lowest);
    for (std::size_t l = layers_.size(); l-- > stop;) {
        pass p{*this, a, item, l};
        auto const& layer = layers_[l];
        std::size_t next = 0;
        for (std::size_t s = 0; s < layer.slot_widths.size(); ++s) {
            float* const kept = keeps ? p.kept(static_cast<int>(s)) : nullptr;
            p.gradient.push_back(kept != nullptr ? kept : gradients_.data() + next);
            p.has.push_back(0);
            next += static_cast<std::size_t>(layer.slot_widths[s] * layout_.rows);
        }
        if (layer.output != no_slot) {
            auto& entering = p.gradient[static_cast<std::size_t>(layer.output)];
            if (keeps && p.kept(layer.output) != nullptr && above != entering) {
                std::memcpy(entering, above, output_floats() * sizeof(float));  // the stage's last layer: nothing wrote it there
            } else {
                entering = above;
            }
            p.gave(layer.output);
        }
        float* below = l == stop && input_gradient != nullptr ? input_gradient : boundaries_[l % 2].data();
        if (keeps && l > stop) {
            pass const next_down{*this, a, item, l - 1};
            float* const kept = next_down.kept(layers_[l - 1].output);
            below = kept != nullptr ? kept : below;
        }
        if (layer.in_width != 0) {
            p.gradient[0] = below;
        }
        for (std::size_t o = layer.ops.size(); o-- > 0;) {
            p.own_gradient(o);
            if (!keeps) {
                p.weight_gradient(o, *adds);
            }
            p.input_gradient(o);
        }
        above = below;
    }
}

}  // namespace rheo::inline v0
