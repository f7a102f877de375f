#pragma once
// SPDX-License-Identifier: Apache-2.0

// What layers cost and how much they hold, from their operations alone: constexpr, so templates can be
// planned and refused by the compiler. Sizes are those the executor really allocates.

#include <cstdint>

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
