#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a layer can drop between its forward and its backward, because it can be recomputed from what stays. First what costs least: slots
// that an operation without a matrix product wrote (norms, activations, rotations, residual sums) have the most bytes per operation, the
// idea of selective recomputation (Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022), which
// drops attention's scores; these are never kept here. Then the whole layer but its input and output (Chen et al., "Training Deep Nets with Sublinear Memory
// Cost", 2016, with a layer as the segment). Numbers of rows (means, log-sum-exp) stay in the first case: they are small. What is
// dropped lives, while it is needed, in one region that the layers of a rank share.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rheo/model/footprint.hpp"
#include "rheo/model/layer.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

enum class recompute_level : std::uint8_t {
    none,
    cheap,  ///< what operations without matrix products wrote
    full,   ///< all but the layer's input and output
};

constexpr std::string_view name_of(recompute_level how)
{
    constexpr std::string_view names[] = {"none", "cheap", "full"};
    return names[static_cast<std::size_t>(how)];
}

namespace detail {

constexpr op const& own_op(op const& o) { return o; }
constexpr op const& own_op(shard_op const& o) { return o.own; }
constexpr bool is_operation(op const&) { return true; }
constexpr bool is_operation(shard_op const& o) { return o.kind == shard_op_kind::operation; }

/// True when the slot can be written again from slots that stay or that were, without a matrix product. What a product activates is the activation of
/// what stays only where that is not rounded when it is stored: else it may be of the sum before (see kernels/linear).
template <class Ops>
constexpr bool is_cheap(Ops const& ops, int slot, microbatch_shape shape, dtype_policy const& policy)
{
    bool cheap = false;
    for (auto const& o : ops) {
        bool const second = slot == own_op(o).z[1];
        if (slot == own_op(o).z[0] || second) {
            switch (own_op(o).kind) {
            case op_kind::layer_norm:
            case op_kind::rms_norm:
            case op_kind::qk_norm:
            case op_kind::residual_add:
            case op_kind::residual_norm:
            case op_kind::residual_rms_norm:
            case op_kind::gelu:
            case op_kind::swiglu: cheap = is_operation(o); break;
            case op_kind::rope: cheap = is_operation(o) && (cheap || !is_in_place(own_op(o))); break;  // in place: where what it turns is cheap, too
            case op_kind::linear_gelu: cheap = second && policy.storage == policy.compute; break;
            default: break;
            }
        }
        if (own_op(o).kind == op_kind::attention && own_op(o).x[0] == slot && shape.slices > 1) {
            return false;  // later slices attend to it
        }
    }
    return cheap;
}

/// The rule of is_dropped for a slot that has memory of its own. @param output of the layer
template <class Ops>
constexpr bool drops_slot(Ops const& ops, int output, int slot, microbatch_shape shape, recompute_level how, dtype_policy const& policy)
{
    expects(how != recompute_level::full || shape.slices == 1, "slices of a sequence are kept: later ones attend to them");
    if (how == recompute_level::none || slot == 0 || slot == output) {
        return false;
    }
    return how == recompute_level::full || is_cheap(ops, slot, shape, policy);
}

}  // namespace detail

/// True when the layer drops the slot. @pre whole layers are not dropped of a sequence in slices
template <class OnlyWhenCalled = void>
constexpr bool is_dropped(layer_description const& layer, int slot, microbatch_shape shape, recompute_level how, dtype_policy const& policy = fp32)
{
    return detail::drops_slot(layer.ops, layer.output, slot, shape, how, policy);
}

/// The same for the slot of a layer's shards in whose memory this one lies.
template <class OnlyWhenCalled = void>
constexpr bool is_dropped(layer_shards const& layer, int slot, microbatch_shape shape, recompute_level how, dtype_policy const& policy = fp32)
{
    return detail::drops_slot(layer.first().ops, layer.first().output, layer.place_of(slot), shape, how, policy);
}

/// True when the operation runs again, all of it or its activation, because the layer drops something that it wrote. @pre as is_dropped
template <class OnlyWhenCalled = void>
constexpr bool is_recomputed(layer_description const& layer, op const& o, microbatch_shape shape, recompute_level how, dtype_policy const& policy = fp32)
{
    for (auto const z : o.z) {
        if (z != no_slot && is_dropped(layer, z, shape, how, policy)) {
            return true;
        }
    }
    if (o.kind == op_kind::loss_gradient && is_dropped(layer, o.x[0], shape, how, policy)) {
        return true;  // it leaves the gradient in what it reads
    }
    return how == recompute_level::full && saved_bytes(o, shape, policy) > bytes{};
}

/// The same for an operation of a layer's shards.
template <class OnlyWhenCalled = void>
constexpr bool is_recomputed(layer_shards const& layer, std::size_t index, microbatch_shape shape, recompute_level how, dtype_policy const& policy = fp32)
{
    auto const& o = layer.first().ops[index];
    for (auto const z : o.own.z) {
        if (z != no_slot && is_dropped(layer, z, shape, how, policy)) {
            return true;
        }
    }
    if (o.own.kind == op_kind::loss_gradient && is_dropped(layer, o.own.x[0], shape, how, policy)) {
        return true;
    }
    return how == recompute_level::full && saved_bytes(layer, index, shape, policy) > bytes{};
}

/// Bytes per microbatch (or slice) that the layer drops: so much less is kept, and so large a region it is recomputed in. @pre as is_dropped
template <class OnlyWhenCalled = void>
constexpr bytes dropped_bytes(layer_description const& layer, microbatch_shape shape, recompute_level how, dtype_policy const& policy = fp32,
                              shard_group const& group = {})
{
    bytes sum;
    if (layer.shards > 1) {
        auto const all = shards_of(layer, group);
        for (std::size_t s = 0; s < all.slots(); ++s) {
            sum += is_dropped(all, static_cast<int>(s), shape, how, policy) ? slot_bytes(all, static_cast<int>(s), shape, policy) : bytes{};
        }
        for (std::size_t o = 0; o < all.ops(); ++o) {
            sum += how == recompute_level::full ? saved_bytes(all, o, shape, policy) : bytes{};
        }
        return sum;
    }
    for (std::size_t s = 0; s < layer.slot_widths.size(); ++s) {
        if (is_dropped(layer, static_cast<int>(s), shape, how, policy)) {
            sum += matrix_bytes(layer.slot_widths[s] * rows(shape), policy.storage);
        }
    }
    for (auto const& o : layer.ops) {
        sum += how == recompute_level::full ? saved_bytes(o, shape, policy) : bytes{};
    }
    return sum;
}

/// Products that are recomputed for each microbatch, once.
template <class OnlyWhenCalled = void>
constexpr flops recompute_flops(layer_description const& layer, microbatch_shape shape, recompute_level how)
{
    return how == recompute_level::full ? forward_flops(layer, shape) : flops{};
}

}  // namespace rheo::inline v0
