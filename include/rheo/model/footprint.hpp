#pragma once
// SPDX-License-Identifier: Apache-2.0

// What layers cost and how much they hold, from their operations alone: constexpr, so templates can be
// planned and refused by the compiler. What flows through layers follows the dtype policy: slots, their gradients and messages are
// stored, what operations save beside them is stored or computed (see saved_by). Sizes are those the executor really allocates. A layer on a grid of shards
// holds as much, each shard's columns in a matrix of its own; what sums over shards work in comes on top (exchange_bytes).

#include <cstddef>
#include <cstdint>

#include "rheo/model/layer.hpp"
#include "rheo/model/layer_shards.hpp"
#include "rheo/model/parameter_bytes.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Elements of all parameters of the layer; a tied tensor counts in each of its layers.
template <class OnlyWhenCalled = void>
constexpr std::int64_t parameter_count(layer_description const& layer)
{
    std::int64_t count = 0;
    for (auto const& p : layer.parameters) {
        count += elements(p.shape);
    }
    return count;
}

/// Bytes that a holder of the layer keeps through the whole run.
template <class OnlyWhenCalled = void>
constexpr bytes persistent_bytes(layer_description const& layer, dtype_policy const& policy = fp32, gradient_buffer buffer = gradient_buffer::reduced)
{
    bytes sum;
    for (auto const& p : layer.parameters) {
        sum += total(parameter_bytes_of(p.shape, policy, buffer));
    }
    return sum;
}

/// Bytes that a recovery copies to give the layer to a rank that has none of it.
template <class OnlyWhenCalled = void>
constexpr bytes committed_bytes(layer_description const& layer, dtype_policy const& policy = fp32)
{
    return {parameter_count(layer) * 3 * size_of(policy.master)};
}

/// What a shard knows of a row of its part of a soft-max: the sum of exponentials and the largest value (kernels/cross_entropy).
inline constexpr std::int64_t row_statistics_bytes = 16;

/// Bytes of a matrix, which begins on a cache line and has whole ones.
constexpr bytes matrix_bytes(std::int64_t count, dtype type) { return {(count * size_of(type) + 63) / 64 * 64}; }

/// Bytes of what an operation saves beside the slots: a matrix per type, one where slots have the type that is computed in.
constexpr bytes saved_bytes(op const& o, microbatch_shape shape, dtype_policy const& policy = fp32)
{
    auto const saved = saved_by(o, shape);
    return policy.compute == policy.storage ? matrix_bytes(saved.computed + saved.stored, policy.storage)
                                            : matrix_bytes(saved.computed, policy.compute) + matrix_bytes(saved.stored, policy.storage);
}

/// Bytes kept for one microbatch between its forward and its backward: every slot and what operations save, where nothing begins on a line.
template <class OnlyWhenCalled = void>
constexpr bytes activation_bytes(layer_description const& layer, microbatch_shape shape, dtype_policy const& policy = fp32)
{
    std::int64_t stored = 0;
    std::int64_t computed = 0;
    for (auto const width : layer.slot_widths) {
        stored += width * rows(shape);
    }
    for (auto const& o : layer.ops) {
        stored += saved_by(o, shape).stored;
        computed += saved_by(o, shape).computed;
    }
    return {stored * size_of(policy.storage) + computed * size_of(policy.compute)};
}

/// Bytes of a slot of a layer's shards, from its forward to its backward.
template <class OnlyWhenCalled = void>
constexpr bytes slot_bytes(layer_shards const& layer, int slot, microbatch_shape shape, dtype_policy const& policy = fp32)
{
    bytes sum;
    for (std::size_t j = 0; layer.is_kept(slot) && j < (layer.is_cut(slot) ? layer.shards.size() : 1); ++j) {
        sum += matrix_bytes(layer.width(j, slot) * rows(shape), policy.storage);
    }
    return sum;
}

/// Bytes of what an operation of a layer's shards saves beside the slots: what is of heads for each shard's own, row-wise operations and the loss for all rows.
template <class OnlyWhenCalled = void>
constexpr bytes saved_bytes(layer_shards const& layer, std::size_t index, microbatch_shape shape, dtype_policy const& policy = fp32)
{
    bytes sum;
    if (layer.first().ops[index].kind == shard_op_kind::operation) {
        for (std::size_t j = 0; j < (saves_by_head(layer.first().ops[index].own.kind) ? layer.shards.size() : 1); ++j) {
            sum += saved_bytes(layer.shards[j].ops[index].own, shape, policy);
        }
    }
    return sum;
}

/// The slot whose gradient the operation's weight gradient reads: what it wrote. no_slot without parameters.
constexpr int weight_gradient_slot(op const& o)
{
    if (o.parameters[0] == no_parameter && o.parameters[1] == no_parameter) {
        return no_slot;
    }
    return o.kind == op_kind::residual_norm || o.kind == op_kind::residual_rms_norm ? o.z[1] : o.z[0];
}

/// True when the loss leaves the slot's gradient in the slot itself.
template <class OnlyWhenCalled = void>
constexpr bool loss_writes_gradient(layer_description const& layer, int slot)
{
    for (auto const& o : layer.ops) {
        if (o.kind == op_kind::loss_gradient && o.x[0] == slot) {
            return true;
        }
    }
    return false;
}

/// The slot whose gradient a split backward keeps for the operation, from the input gradient to the weight gradient; no_slot: none.
template <class OnlyWhenCalled = void>
constexpr int kept_gradient_slot(layer_description const& layer, op const& o)
{
    auto const slot = weight_gradient_slot(o);
    return slot == no_slot || loss_writes_gradient(layer, slot) ? no_slot : slot;
}

template <class OnlyWhenCalled = void>
constexpr bool loss_writes_gradient(layer_shards const& layer, int slot)
{
    for (auto const& o : layer.first().ops) {
        if (o.kind == shard_op_kind::operation && o.own.kind == op_kind::loss_gradient && o.own.x[0] == slot) {
            return true;
        }
    }
    return false;
}

/// The same for an operation of a layer's shards. A partial product's is that of the sum.
template <class OnlyWhenCalled = void>
constexpr int kept_gradient_slot(layer_shards const& layer, shard_op const& o)
{
    auto const slot = weight_gradient_slot(o.own);
    return slot == no_slot || loss_writes_gradient(layer, slot) ? no_slot : layer.place_of(slot);
}

namespace detail {

/// Adds up over the kept slots of a layer's shards whose gradients a split backward keeps, each once.
template <class OnlyWhenCalled = void>
constexpr bytes kept_gradient_bytes(layer_shards const& layer, microbatch_shape shape, dtype_policy const& policy)
{
    bytes sum;
    for (std::size_t s = 0; s < layer.slots(); ++s) {
        bool kept = false;
        for (auto const& o : layer.first().ops) {
            kept = kept || kept_gradient_slot(layer, o) == static_cast<int>(s);
        }
        sum += kept ? slot_bytes(layer, static_cast<int>(s), shape, policy) : bytes{};
    }
    return sum;
}

}  // namespace detail

/// Bytes that a stage of consecutive layers allocates for one microbatch from its forward to its backward: what the layers keep, a
/// slot between two of them once, every matrix from a cache line on. A group's member has all rows of what is computed row by row.
template <class OnlyWhenCalled = void>
constexpr bytes activation_bytes(array_view<layer_description const> stage, microbatch_shape shape, dtype_policy const& policy = fp32,
                                 shard_group const& group = {})
{
    bytes sum;
    for (std::size_t l = 0; l < stage.size(); ++l) {
        if (stage[l].shards > 1) {
            auto const all = shards_of(stage[l], group);
            for (std::size_t s = l == 0 ? 0 : 1; s < all.slots(); ++s) {
                sum += slot_bytes(all, static_cast<int>(s), shape, policy);
            }
            for (std::size_t o = 0; o < all.ops(); ++o) {
                sum += saved_bytes(all, o, shape, policy);
            }
            continue;
        }
        for (std::size_t s = l == 0 ? 0 : 1; s < stage[l].slot_widths.size(); ++s) {
            sum += matrix_bytes(stage[l].slot_widths[s] * rows(shape), policy.storage);
        }
        for (auto const& o : stage[l].ops) {
            sum += saved_bytes(o, shape, policy);
        }
    }
    return sum;
}

/// Of these, its input: what stays while the activation is evicted.
template <class OnlyWhenCalled = void>
constexpr bytes input_bytes(array_view<layer_description const> stage, microbatch_shape shape, dtype_policy const& policy = fp32)
{
    return stage.empty() ? bytes{} : matrix_bytes(stage.front().slot_widths[0] * rows(shape), policy.storage);
}

/// Bytes that it allocates besides when its backward is split, from the input gradient to the weight gradient of a microbatch.
template <class OnlyWhenCalled = void>
constexpr bytes kept_gradient_bytes(array_view<layer_description const> stage, microbatch_shape shape, dtype_policy const& policy = fp32,
                                    shard_group const& group = {})
{
    bytes sum;
    for (auto const& layer : stage) {
        if (layer.shards > 1) {
            sum += detail::kept_gradient_bytes(shards_of(layer, group), shape, policy);
            continue;
        }
        for (auto const& o : layer.ops) {
            if (auto const slot = kept_gradient_slot(layer, o); slot != no_slot) {
                sum += matrix_bytes(layer.slot_widths[static_cast<std::size_t>(slot)] * rows(shape), policy.storage);
            }
        }
    }
    return sum;
}

/// Bytes in which the shards of a layer exchange what they computed, while it is computed: a partial product of each, or statistics of its part of a
/// soft-max. The member of a group has its own partial products, and of its rows the sums that come from the others.
template <class OnlyWhenCalled = void>
constexpr bytes exchange_bytes(layer_description const& layer, microbatch_shape shape, dtype_policy const& policy = fp32, shard_group const& group = {})
{
    if (layer.shards == 1) {
        return {};
    }
    bytes most;
    auto const all = shards_of(layer, group);
    auto const mine = static_cast<std::int64_t>(all.shards.size());
    auto const own_rows = rows_of(group.run(layer.shards), rows(shape), layer.shards).count();
    std::int64_t received = 0;
    for (std::size_t m = 0; m < group.members.size(); ++m) {
        received += static_cast<int>(m) == group.self ? 0 : static_cast<std::int64_t>(nodes_within(layer.shards, group.members[m]).size());
    }
    for (auto const& o : all.first().ops) {
        bytes one;
        if (o.own.kind == op_kind::cross_entropy || o.own.kind == op_kind::loss_gradient) {
            one = bytes{row_statistics_bytes * rows(shape)} * layer.shards;
        } else if (o.kind == shard_op_kind::sum_shards || o.kind == shard_op_kind::gather_rows) {
            one = matrix_bytes(o.own.out_width * own_rows, policy.compute) * received;
            one += o.kind == shard_op_kind::sum_shards ? matrix_bytes(o.own.out_width * rows(shape), policy.compute) * mine : bytes{};
        }
        most = one > most ? one : most;
    }
    return most;
}

/// The most of a stage's layers.
template <class OnlyWhenCalled = void>
constexpr bytes exchange_bytes(array_view<layer_description const> stage, microbatch_shape shape, dtype_policy const& policy = fp32,
                               shard_group const& group = {})
{
    bytes most;
    for (auto const& layer : stage) {
        auto const one = exchange_bytes(layer, shape, policy, group);
        most = one > most ? one : most;
    }
    return most;
}

/// Bytes of the message to the next stage when the model is cut after this layer (gradients: the same).
constexpr bytes boundary_bytes(layer_description const& layer, microbatch_shape shape, dtype_policy const& policy = fp32)
{
    return {layer.out_width * rows(shape) * size_of(policy.storage)};
}

template <class OnlyWhenCalled = void>
constexpr flops forward_flops(layer_description const& layer, microbatch_shape shape)
{
    flops sum;
    for (auto const& o : layer.ops) {
        sum += forward_flops(o, shape);
    }
    return sum;
}

template <class OnlyWhenCalled = void>
constexpr flops backward_flops(layer_description const& layer, microbatch_shape shape)
{
    flops sum;
    for (auto const& o : layer.ops) {
        sum += backward_flops(o, shape);
    }
    return sum;
}

}  // namespace rheo::inline v0
