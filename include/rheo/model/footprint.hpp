#pragma once
// SPDX-License-Identifier: Apache-2.0

// What layers cost and how much they hold, from their operations alone: constexpr, so templates can be
// planned and refused by the compiler. Sizes are those the executor really allocates.

#include <cstddef>
#include <cstdint>
#include <span>

#include "rheo/model/layer.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Elements of all parameters of the layer; a tied tensor counts in each of its layers.
constexpr std::int64_t parameter_count(layer_description const& layer)
{
    std::int64_t count = 0;
    for (auto const& p : layer.parameters) {
        count += elements(p.shape);
    }
    return count;
}

/// Committed state per parameter: fp32 master and two fp32 moments.
inline constexpr std::int64_t committed_bytes_per_parameter = 12;

/// While a step runs: an int64 accumulator and the reduced fp32 gradient.
inline constexpr std::int64_t working_bytes_per_parameter = 12;

/// Bytes that a holder of the layer keeps through the whole run.
constexpr bytes persistent_bytes(layer_description const& layer)
{
    return {parameter_count(layer) * (committed_bytes_per_parameter + working_bytes_per_parameter)};
}

/// Bytes that a recovery copies to give the layer to a rank that has none of it.
constexpr bytes committed_bytes(layer_description const& layer)
{
    return {parameter_count(layer) * committed_bytes_per_parameter};
}

/// Bytes kept for one microbatch between its forward and its backward: every slot and what operations save.
constexpr bytes activation_bytes(layer_description const& layer, microbatch_shape shape)
{
    std::int64_t floats = 0;
    for (auto const width : layer.slot_widths) {
        floats += width * rows(shape);
    }
    for (auto const& o : layer.ops) {
        floats += saved_floats(o, shape);
    }
    return {floats * 4};
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
constexpr int kept_gradient_slot(layer_description const& layer, op const& o)
{
    auto const slot = weight_gradient_slot(o);
    return slot == no_slot || loss_writes_gradient(layer, slot) ? no_slot : slot;
}

namespace detail {

/// Matrices begin on cache lines of 64 bytes.
constexpr std::int64_t whole_lines(std::int64_t floats) { return (floats + 15) / 16 * 16; }

}  // namespace detail

/// Bytes that a stage of consecutive layers allocates for one microbatch from its forward to its backward: what the layers keep, a
/// slot between two of them once, every matrix from a cache line on.
constexpr bytes activation_bytes(std::span<layer_description const> stage, microbatch_shape shape)
{
    std::int64_t floats = 0;
    for (std::size_t l = 0; l < stage.size(); ++l) {
        for (std::size_t s = l == 0 ? 0 : 1; s < stage[l].slot_widths.size(); ++s) {
            floats += detail::whole_lines(stage[l].slot_widths[s] * rows(shape));
        }
        for (auto const& o : stage[l].ops) {
            floats += detail::whole_lines(saved_floats(o, shape));
        }
    }
    return {floats * 4};
}

/// Of these, its input: what stays while the activation is evicted.
constexpr bytes input_bytes(std::span<layer_description const> stage, microbatch_shape shape)
{
    return {stage.empty() ? 0 : detail::whole_lines(stage.front().slot_widths[0] * rows(shape)) * 4};
}

/// Bytes that it allocates besides when its backward is split, from the input gradient to the weight gradient of a microbatch.
constexpr bytes kept_gradient_bytes(std::span<layer_description const> stage, microbatch_shape shape)
{
    std::int64_t floats = 0;
    for (auto const& layer : stage) {
        for (auto const& o : layer.ops) {
            if (auto const slot = kept_gradient_slot(layer, o); slot != no_slot) {
                floats += detail::whole_lines(layer.slot_widths[static_cast<std::size_t>(slot)] * rows(shape));
            }
        }
    }
    return {floats * 4};
}

/// Bytes of the message to the next stage when the model is cut after this layer (gradients: the same).
constexpr bytes boundary_bytes(layer_description const& layer, microbatch_shape shape)
{
    return {layer.out_width * rows(shape) * 4};
}

constexpr flops forward_flops(layer_description const& layer, microbatch_shape shape)
{
    flops sum;
    for (auto const& o : layer.ops) {
        sum += forward_flops(o, shape);
    }
    return sum;
}

constexpr flops backward_flops(layer_description const& layer, microbatch_shape shape)
{
    flops sum;
    for (auto const& o : layer.ops) {
        sum += backward_flops(o, shape);
    }
    return sum;
}

}  // namespace rheo::inline v0
