#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whether the operations of a layer work together: in their order each reads what another one wrote, and on the way back each gradient is there
// when it is needed. A layer where it is not would train with wrong gradients.

#include <array>
#include <cstddef>

#include "rheo/model/detail/layer_judge.hpp"
#include "rheo/model/layer.hpp"
#include "rheo/model/op_shapes.hpp"

namespace rheo::inline v0::detail {

/// @pre layer_fit finds nothing wrong
template <class OnlyWhenCalled = void>
struct layer_dataflow : layer_judge {
    /// The first of a layer that takes no columns reads tokens, the last of one that gives none is the loss, and no other.
    constexpr bool ends_are_wrong(std::size_t o)
    {
        auto const& op = layer.ops[o];
        bool const embeds = op.kind == op_kind::embedding;
        if (embeds != (layer.in_width == 0 && o == 0)) {
            operation(o) << (embeds ? "reads tokens: it must be the first of a layer that takes no columns"
                                    : "must read tokens, as the first of a layer that takes no columns");
            return true;
        }
        if (is_loss(op.kind) != (layer.out_width == 0 && o + 1 == layer.ops.size())) {
            operation(o) << (is_loss(op.kind) ? "must be the last of a layer that gives no columns"
                                              : "must be a loss, as the last of a layer that gives no columns");
            return true;
        }
        return false;
    }

    /// Whether the operation is one that can be in place, and nothing that it writes over is read by an operation before it or by a backward: its own asks for
    /// the gradient alone.
    constexpr bool may_write_over(std::size_t o)
    {
        auto const& op = layer.ops[o];
        if (op.kind != op_kind::rope || !is_in_place(op)) {
            return false;
        }
        for (std::size_t before = 0; before < o; ++before) {
            auto const& other = layer.ops[before];
            if (other.x[0] == op.z[0] || other.x[1] == op.z[0] || (other.z[0] == op.z[0] && reads_back(other.kind))) {
                return false;
            }
        }
        return true;
    }

    /// What is read was written before, and nothing is written twice but in place.
    constexpr bool order_is_wrong()
    {
        std::array<bool, 16> written{};
        int last_id = -1;
        for (std::size_t o = 0; o < layer.ops.size(); ++o) {
            auto const& op = layer.ops[o];
            if (op.id.value <= last_id) {
                operation(o) << "must have a greater id than the one before it: add_op numbers them, and random numbers are keyed by them";
                return true;
            }
            last_id = op.id.value;
            if (ends_are_wrong(o)) {
                return true;
            }
            for (auto const x : op.x) {
                if (x > 0 && !written[static_cast<std::size_t>(x)]) {
                    operation(o) << "reads slot " << x << ", which no operation before it writes";
                    return true;
                }
            }
            for (auto const z : op.z) {
                if (z != no_slot && (z == 0 || (written[static_cast<std::size_t>(z)] && !may_write_over(o)))) {
                    operation(o) << "writes slot " << z << ", which the backward needs as it was";
                    return true;
                }
                if (z != no_slot) {
                    written[static_cast<std::size_t>(z)] = true;
                }
            }
        }
        bool const none = layer.out_width == 0 && layer.output == no_slot;
        bool const there = layer.output > 0 && layer.output < static_cast<int>(layer.slot_widths.size());
        if (!none && !(there && written[static_cast<std::size_t>(layer.output)] && width_of(layer.output) == layer.out_width)) {
            fault << "the layer's output must be a slot that an operation writes, " << layer.out_width << " columns wide, not slot " << layer.output;
            return true;
        }
        return false;
    }

    /// Whether each gradient is there when it is needed, and nothing of it is written over: the walk that the backward takes.
    constexpr bool gradients_are_wrong()
    {
        std::array<bool, 16> has{};  // a gradient, of each slot
        if (layer.output != no_slot) {
            has[static_cast<std::size_t>(layer.output)] = true;
        }
        auto const logits = is_loss(layer.ops.back().kind) ? layer.ops.back().x[0] : no_slot;
        for (auto o = layer.ops.size(); o-- > 0;) {
            auto const& op = layer.ops[o];
            auto const result = op.z[op.z[1] == no_slot ? 0 : 1];
            if (result != no_slot && !has[static_cast<std::size_t>(result)]) {
                operation(o) << "writes slot " << result << ", which nothing reads: it would have no gradient";
                return true;
            }
            if (op.z[0] != no_slot && op.z[0] == logits && reads_back(op.kind)) {
                operation(o) << "writes slot " << logits << ", where the loss leaves its gradient, but the backward needs what was there";
                return true;
            }
            if (op.kind == op_kind::linear_gelu && has[static_cast<std::size_t>(op.z[0])]) {
                operation(o) << "writes slot " << op.z[0] << " before its activation, which nothing else may read";
                return true;
            }
            for (auto const x : op.x) {
                if (x == no_slot) {
                    continue;
                }
                bool const is_written_over = !adds_to_gradient(op.kind) && !is_in_place(op) && (has[static_cast<std::size_t>(x)] || op.x[0] == op.x[1]);
                if (is_written_over || (x == logits && !is_loss(op.kind))) {
                    operation(o) << "reads slot " << x
                                 << ", which is read again: linear, unembed and norms can share what they read, and come before the one that cannot";
                    return true;
                }
                has[static_cast<std::size_t>(x)] = true;
            }
        }
        if (layer.in_width != 0 && !has[0]) {
            fault << "no operation reads slot 0, the layer's input";
            return true;
        }
        return false;
    }

    constexpr bool parameters_are_idle()
    {
        for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
            bool used = false;
            for (auto const& op : layer.ops) {
                used = used || op.parameters[0] == static_cast<int>(p) || op.parameters[1] == static_cast<int>(p);
            }
            if (!used) {
                fault << "no operation uses parameter '" << layer.parameters[p].name << "'";
                return true;
            }
        }
        return false;
    }

    constexpr bool is_wrong() { return order_is_wrong() || gradients_are_wrong() || parameters_are_idle(); }
};

}  // namespace rheo::inline v0::detail
