#pragma once
// SPDX-License-Identifier: Apache-2.0

// The memory in which a stage's backward works besides activations: it belongs to the stage, not to an item, because items are
// computed one after the other.

#include <algorithm>
#include <cstdint>

#include "rheo/model/footprint.hpp"
#include "rheo/model/layer.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct backward_workspace {
    bytes gradients{};  ///< of the slots of one layer at a time
    bytes boundary{};   ///< a gradient between two layers, of which there are two

    friend constexpr bool operator==(backward_workspace, backward_workspace) = default;
};

/// Bytes of the gradient of a slot of a layer's shards. Where all rows were gathered each shard computes a part of it, not rounded.
template <class OnlyWhenCalled = void>
constexpr bytes gradient_bytes(layer_shards const& layer, int slot, microbatch_shape shape, dtype_policy const& policy = fp32)
{
    return layer.form(slot) == slot_form::gathered
               ? matrix_bytes(layer.width(0, slot) * rows(shape), policy.compute) * static_cast<std::int64_t>(layer.shards.size())
               : slot_bytes(layer, slot, shape, policy);
}

/// What a backward of the layers works in.
template <class OnlyWhenCalled = void>
constexpr backward_workspace backward_workspace_of(array_view<layer_description const> stage, microbatch_shape shape, dtype_policy const& policy = fp32,
                                                   shard_group const& group = {})
{
    backward_workspace room{};
    for (auto const& layer : stage) {
        bytes of_layer;
        if (layer.shards > 1) {
            auto const all = shards_of(layer, group);
            for (std::size_t s = 0; s < all.slots(); ++s) {
                of_layer += gradient_bytes(all, static_cast<int>(s), shape, policy);
            }
            auto const one = matrix_bytes(std::max(layer.in_width, layer.out_width) * rows(shape), policy.storage);
            room.boundary = one > room.boundary ? one : room.boundary;
            room.gradients = of_layer > room.gradients ? of_layer : room.gradients;
            continue;
        }
        for (auto const width : layer.slot_widths) {
            auto const one = matrix_bytes(width * rows(shape), policy.storage);
            of_layer += one;
            room.boundary = one > room.boundary ? one : room.boundary;
        }
        room.gradients = of_layer > room.gradients ? of_layer : room.gradients;
    }
    return room;
}

/// All of it.
template <class OnlyWhenCalled = void>
constexpr bytes backward_workspace_bytes(array_view<layer_description const> stage, microbatch_shape shape, dtype_policy const& policy = fp32,
                                         shard_group const& group = {})
{
    auto const room = backward_workspace_of(stage, shape, policy, group);
    return room.gradients + room.boundary * 2;
}

}  // namespace rheo::inline v0
