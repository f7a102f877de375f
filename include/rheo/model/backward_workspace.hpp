#pragma once
// SPDX-License-Identifier: Apache-2.0

// The memory in which a stage's backward works besides activations: it belongs to the stage, not to an item, because items are
// computed one after the other.

#include <cstdint>
#include <span>

#include "rheo/model/footprint.hpp"
#include "rheo/model/layer.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Bytes in which a backward works: the gradients of the slots of one layer at a time, and two gradients between layers.
constexpr bytes backward_workspace_bytes(std::span<layer_description const> stage, microbatch_shape shape, dtype_policy const& policy = fp32)
{
    bytes largest;
    bytes widest;
    for (auto const& layer : stage) {
        bytes of_layer;
        for (auto const width : layer.slot_widths) {
            auto const one = matrix_bytes(width * rows(shape), policy.storage);
            of_layer += one;
            widest = one > widest ? one : widest;
        }
        largest = of_layer > largest ? of_layer : largest;
    }
    return largest + widest * 2;
}

}  // namespace rheo::inline v0
