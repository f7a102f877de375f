#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where a backward goes through a product and the GELU before it at once: the gradient of what GELU read is the only one that anything asks for.

#include <cstddef>

#include "rheo/model/op.hpp"
#include "rheo/model/shard_layer.hpp"

namespace rheo::inline v0 {

/// Whether the operation multiplies by a weight.
constexpr bool is_linear(shard_op const& o)
{
    return o.kind == shard_op_kind::operation && (o.own.kind == op_kind::linear || o.own.kind == op_kind::linear_gelu || o.own.kind == op_kind::unembed);
}

/// The slot before the activation of what product `index` reads, where a fused product activated that, nothing else reads it and it stays in the layer;
/// no_slot otherwise.
constexpr int pre_activation_of(shard_layer const& layer, std::size_t index)
{
    auto const& o = layer.ops[index];
    auto const slot = o.own.x[0];
    if (!is_linear(o) || slot == layer.output) {
        return no_slot;
    }
    int before = no_slot;
    for (std::size_t i = 0; i < layer.ops.size(); ++i) {
        auto const& other = layer.ops[i].own;
        if (i != index && (other.x[0] == slot || other.x[1] == slot)) {
            return no_slot;
        }
        if (other.kind == op_kind::linear_gelu && other.z[1] == slot) {
            before = other.z[0];
        }
    }
    return before;
}

}  // namespace rheo::inline v0
