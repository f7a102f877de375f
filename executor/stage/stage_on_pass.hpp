#pragma once
// SPDX-License-Identifier: Apache-2.0

// The definitions of stage_on.hpp, for the one source file of each backend that makes its stage: here the walks over layers.

#include "executor/stage/stage_on_backward.hpp"
#include "executor/stage/stage_on_exchanges.hpp"
#include "executor/stage/stage_on_forward.hpp"
#include "executor/stage/stage_on_norms.hpp"
#include "executor/stage/stage_on_qk_norm.hpp"
#include "executor/stage/stage_on_runs.hpp"
#include "executor/stage/stage_on_slot.hpp"

namespace rheo::inline v0 {

template <class Kernels>
void stage_on<Kernels>::forward_pass(activation& a, stage_item const& item, std::span<loss_sum> losses)
{
    perform(pass_kind::forward, a, item, {}, [&] {
        shared_regions::loan recomputed{buffers_for_recompute(), backend_->own()};
        shared_regions::loan exchanged{exchange_buffers_, backend_->own()};
        for (std::size_t l = 0; l < layers_.size(); ++l) {
            pass p{*this, a, item, l, {recomputed.data(), exchanged.data()}};
            for (std::size_t o = 0; o < p.all().ops(); ++o) {
                p.forward(o, losses);
            }
        }
    });
    if constexpr (Kernels::reads_items) {
        if (has_loss()) {
            for (std::size_t j = 0; j < losses.size(); ++j) {
                kernels_.fetch_loss(losses[j], j);
            }
        }
        if (layers_.front().in_width == 0) {  // while the device computes
            a.order = order_of(a.tokens, layers_.front().ops[0].in_width);
        }
    }
}

template <class Kernels>
void stage_on<Kernels>::weight_gradient_pass(activation& a, stage_item const& item, layer_id lowest, std::function<bool(use_id)> const& adds)
{
    while_adding([&] {
        perform(pass_kind::weight_gradient, a, item, {.lowest = lowest, .adds = &adds}, [&] {
            shared_regions::loan recomputed{buffers_for_recompute(), backend_->own()};
            shared_regions::loan exchanged{exchange_buffers_, backend_->own()};
            for (std::size_t l = layers_.size(); l-- > depth_of(lowest);) {
                pass p{*this, a, item, l, {recomputed.data(), exchanged.data()}};
                p.recompute_dropped();
                for (std::size_t j = 0; j < p.shards(); ++j) {
                    auto& of_shard = p.gradient.emplace_back();
                    for (std::size_t s = 0; s < p.all().slots(); ++s) {
                        auto const number = static_cast<int>(s);
                        of_shard.push_back(loss_writes_gradient(p.all(), number) ? p.slot(j, number) : p.kept(j, number));
                    }
                }
                for (std::size_t o = p.all().ops(); o-- > 0;) {
                    p.weight_gradient(o, adds);
                }
            }
        });
    });
}

/// Where the gradients of a layer's slots lie: kept ones in the activation, others in what the stage works in. Slots that share memory share their
/// gradients', but for gathered rows, of which each shard computes a part.
template <class Kernels>
void stage_on<Kernels>::place_gradients(pass& p, bool keeps)
{
    auto const policy = backend_->policy();
    auto const& all = p.all();
    p.gradient.assign(p.shards(), std::vector<storage*>(all.slots(), nullptr));
    p.has.assign(p.shards(), std::vector<char>(all.slots(), 0));
    std::int64_t next = 0;
    auto const take = [&](std::int64_t count, dtype type) {
        auto* const here = gradients_.data() + next;
        next += matrix_bytes(count, type).count;
        return reinterpret_cast<storage*>(here);
    };
    for (std::size_t s = 0; s < all.slots(); ++s) {
        auto const number = static_cast<int>(s);
        for (std::size_t j = 0; j < p.shards(); ++j) {
            auto& to = p.gradient[j][s];
            auto const count = all.width(j, number) * layout_.rows;
            if (all.form(number) == slot_form::gathered) {
                to = take(count, policy.compute);
            } else if (all.is_kept(number)) {
                to = j > 0 && !all.is_cut(number) ? p.gradient[0][s] : take(count, policy.storage);
                if (auto* const kept = keeps ? p.kept(j, number) : nullptr; kept != nullptr) {
                    to = kept;
                }
            }
        }
    }
}

/// The slots that lie in the memory of others, when that is settled.
template <class Kernels>
void stage_on<Kernels>::share_gradients(pass& p)
{
    for (std::size_t s = 0; s < p.all().slots(); ++s) {
        auto const number = static_cast<int>(s);
        for (auto& of_shard : p.gradient) {
            if (!p.all().is_kept(number) && p.all().form(number) != slot_form::gathered) {
                of_shard[s] = of_shard[static_cast<std::size_t>(p.all().place_of(number))];
            }
        }
    }
}

template <class Kernels>
void stage_on<Kernels>::walk_down(activation& a, stage_item const& item, layer_id lowest, void* output_gradient, void* input_gradient,
                                  std::function<bool(use_id)> const* adds)
{
    bool const keeps = adds == nullptr;
    // The gradient that enters a layer may be written over.
    auto* above = static_cast<storage*>(output_gradient);
    auto const stop = depth_of(lowest);
    shared_regions::loan recomputed{buffers_for_recompute(), backend_->own()};
    shared_regions::loan exchanged{exchange_buffers_, backend_->own()};
    for (std::size_t l = layers_.size(); l-- > stop;) {
        pass p{*this, a, item, l, {recomputed.data(), exchanged.data()}};
        p.recompute_dropped();
        place_gradients(p, keeps);
        auto const set = [&p](int s, storage* to) {
            for (auto& of_shard : p.gradient) {
                of_shard[static_cast<std::size_t>(s)] = to;
            }
        };
        if (auto const output = p.all().first().output; output != no_slot) {
            if (auto* const kept = keeps ? p.kept(0, output) : nullptr; kept != nullptr && above != kept) {
                kernels_.copy(kept, above, output_bytes());  // the stage's last layer: nothing wrote it there
            } else {
                set(output, above);
            }
            p.all_gave(output);
        }
        auto* below = l == stop && input_gradient != nullptr ? static_cast<storage*>(input_gradient) : pass::template at_offset<storage>(boundaries_[l % 2], 0);
        if (keeps && l > stop) {
            pass const next_down{*this, a, item, l - 1};
            storage* const kept = next_down.kept(0, next_down.all().first().output);
            below = kept != nullptr ? kept : below;
        }
        if (layers_[l].in_width != 0) {
            set(0, below);
        }
        share_gradients(p);
        for (std::size_t o = p.all().ops(); o-- > 0;) {
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
    auto const walk = [&] {
        perform(pass_kind::backward, a, item, {.lowest = lowest, .above = output_gradient, .below = input_gradient, .adds = adds},
                [&] { walk_down(a, item, lowest, output_gradient, input_gradient, adds); });
    };
    if (adds != nullptr) {
        while_adding(walk);
    } else {
        walk();
    }
}

}  // namespace rheo::inline v0
