#pragma once
// SPDX-License-Identifier: Apache-2.0

// The definitions of stage_on.hpp, for the one source file of each backend that makes its stage: here the walks over layers.

#include "executor/stage/stage_on_backward.hpp"
#include "executor/stage/stage_on_forward.hpp"
#include "executor/stage/stage_on_norms.hpp"
#include "executor/stage/stage_on_slot.hpp"

namespace rheo::inline v0 {

template <class Kernels>
void stage_on<Kernels>::forward_pass(activation& a, stage_item const& item, loss_sum& loss)
{
    perform(pass_kind::forward, a, item, {}, [&] {
        recompute_buffers::loan buffer{buffers_for_recompute(), backend_->own()};
        for (std::size_t l = 0; l < layers_.size(); ++l) {
            pass p{*this, a, item, l, buffer.data()};
            for (std::size_t o = 0; o < layers_[l].ops.size(); ++o) {
                p.forward(o, loss);
            }
        }
    });
    if constexpr (Kernels::reads_items) {
        if (has_loss()) {
            kernels_.fetch_loss(loss);
        }
        if (layers_.front().in_width == 0) {  // while the device computes
            a.order = order_of(a.tokens, layers_.front().ops[0].in_width);
        }
    }
}

template <class Kernels>
void stage_on<Kernels>::weight_gradient_pass(activation& a, stage_item const& item, layer_id lowest, std::function<bool(use_id)> const& adds)
{
    begin_adding();
    perform(pass_kind::weight_gradient, a, item, {.lowest = lowest, .adds = &adds}, [&] {
        recompute_buffers::loan buffer{buffers_for_recompute(), backend_->own()};
        for (std::size_t l = layers_.size(); l-- > depth_of(lowest);) {
            pass p{*this, a, item, l, buffer.data()};
            p.recompute_dropped();
            auto const& layer = layers_[l];
            for (std::size_t s = 0; s < layer.slot_widths.size(); ++s) {
                auto const number = static_cast<int>(s);
                p.gradient.push_back(loss_writes_gradient(layer, number) ? p.slot(number) : p.kept(number));
            }
            for (std::size_t o = layer.ops.size(); o-- > 0;) {
                p.weight_gradient(o, adds);
            }
        }
    });
    end_adding();
}

template <class Kernels>
void stage_on<Kernels>::walk_down(activation& a, stage_item const& item, layer_id lowest, void* output_gradient, void* input_gradient,
                                  std::function<bool(use_id)> const* adds)
{
    bool const keeps = adds == nullptr;
    // The gradient that enters a layer may be written over.
    auto* above = static_cast<storage*>(output_gradient);
    auto const stop = depth_of(lowest);
    recompute_buffers::loan buffer{buffers_for_recompute(), backend_->own()};
    for (std::size_t l = layers_.size(); l-- > stop;) {
        pass p{*this, a, item, l, buffer.data()};
        p.recompute_dropped();
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
}

template <class Kernels>
void stage_on<Kernels>::backward_pass(activation& a, stage_item const& item, layer_id lowest, void* output_gradient, void* input_gradient,
                                      std::function<bool(use_id)> const* adds)
{
    if (adds != nullptr) {
        begin_adding();
    }
    perform(pass_kind::backward, a, item, {.lowest = lowest, .above = output_gradient, .below = input_gradient, .adds = adds},
            [&] { walk_down(a, item, lowest, output_gradient, input_gradient, adds); });
    if (adds != nullptr) {
        end_adding();
    }
}

}  // namespace rheo::inline v0
