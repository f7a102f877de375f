#pragma once
// SPDX-License-Identifier: Apache-2.0

// Fusion as a rewrite of a layer's operation list. Each rule joins an operation with the next one when
// the next one reads what the first wrote; the joined operation writes both slots, because backward
// and other readers need them. It is a value transformation: static_assert can show its result, the
// footprint is computed from it and the executor runs exactly it.

#include "rheo/model/layer.hpp"

namespace rheo::inline v0 {

namespace detail {

/// True when `second` may be joined to `first`; `joined` is then the operation that replaces both.
constexpr bool fuses(op const& first, op const& second, op& joined)
{
    joined = first;
    if (second.x[0] != first.z[0] || first.z[0] == no_slot) {
        return false;
    }
    if (first.kind == op_kind::linear && second.kind == op_kind::gelu) {
        joined.kind = op_kind::linear_gelu;
        joined.z = {first.z[0], second.z[0]};
        return true;
    }
    bool const layer = second.kind == op_kind::layer_norm;
    if (first.kind == op_kind::residual_add && (layer || second.kind == op_kind::rms_norm)) {
        joined.kind = layer ? op_kind::residual_norm : op_kind::residual_rms_norm;
        joined.z = {first.z[0], second.z[0]};
        joined.parameters = second.parameters;
        joined.epsilon_e9 = second.epsilon_e9;
        return true;
    }
    return false;
}

}  // namespace detail

/// The layer with residual + norm, linear + gelu and loss + its gradient fused. Parameters, slots and
/// the random numbers stay those of the unfused layer.
template <class OnlyWhenCalled = void>
constexpr layer_description fused(layer_description const& layer)
{
    auto result = layer;
    result.ops = {};
    for (std::size_t i = 0; i < layer.ops.size(); ++i) {
        auto current = layer.ops[i];
        if (op joined; i + 1 < layer.ops.size() && detail::fuses(current, layer.ops[i + 1], joined)) {
            current = joined;
            ++i;
        } else if (current.kind == op_kind::cross_entropy) {
            current.kind = op_kind::loss_gradient;
        }
        result.ops.push_back(current);
    }
    return result;
}

}  // namespace rheo::inline v0
