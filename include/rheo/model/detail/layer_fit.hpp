#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whether each operation of a layer, by itself, fits the slots and parameters that the layer declares: it would read and write beyond them.

#include <array>
#include <cstddef>
#include <cstdint>

#include "rheo/model/detail/layer_judge.hpp"
#include "rheo/model/layer.hpp"
#include "rheo/model/op_shapes.hpp"
#include "rheo/tensor/shape.hpp"

namespace rheo::inline v0::detail {

template <class OnlyWhenCalled = void>
struct layer_fit : layer_judge {
    constexpr layer_sentence& add_shape(tensor_shape shape, bool any_rows = false)
    {
        if (any_rows) {
            fault << "n";
        } else {
            fault << shape.rows;
        }
        return fault << " x " << shape.columns;
    }
    constexpr bool slots_are_wrong()
    {
        if (layer.ops.empty() || layer.slot_widths.empty()) {
            fault << "a layer needs an operation, and slot 0 for what it takes";
            return true;
        }
        for (std::size_t s = 0; s < layer.slot_widths.size(); ++s) {
            if (layer.slot_widths[s] < (s == 0 ? 0 : 1)) {
                fault << "slot " << static_cast<std::int64_t>(s) << " is " << layer.slot_widths[s] << " columns wide, but must be at least 1";
                return true;
            }
        }
        if (width_of(0) != layer.in_width) {
            fault << "slot 0 is " << width_of(0) << " columns wide, but the layer takes " << layer.in_width;
            return true;
        }
        return false;
    }

    constexpr bool heads_are_wrong(std::size_t o)
    {
        auto const& op = layer.ops[o];
        bool const turns = op.kind == op_kind::rope;
        bool const norms = op.kind == op_kind::qk_norm;
        if (!turns && !norms && op.kind != op_kind::attention) {
            return false;
        }
        if (op.heads < 1 || op.kv_heads < 0 || op.heads % kv_heads_of(op) != 0) {
            operation(o) << "has " << op.heads << " heads and " << kv_heads_of(op) << " of keys and values, which must divide them";
            return true;
        }
        auto const parts = turns || norms ? op.heads + 2 * kv_heads_of(op) : op.heads;  // heads of the output
        if (op.out_width % parts != 0) {
            operation(o) << "is " << op.out_width << " wide, which is no multiple of its " << parts << " heads";
            return true;
        }
        if (turns && (head_width(op) % 2 != 0 || op.rope_base < 1)) {
            operation(o) << "turns pairs of columns: its heads must be an even number wide, not " << head_width(op) << ", its base at least 1, not "
                         << op.rope_base;
            return true;
        }
        if (auto const wrong = error_of(op.scaling); turns && !wrong.empty()) {
            operation(o) << "turns pairs of columns: its scaling " << wrong;
            return true;
        }
        return false;
    }

    /// Its own widths, heads and dropout.
    constexpr bool operation_is_wrong(std::size_t o)
    {
        auto const& op = layer.ops[o];
        if (op.in_width < 1 || (op.out_width < 1 && !is_loss(op.kind))) {
            operation(o) << "is " << op.in_width << " -> " << op.out_width << " wide: both must be at least 1";
            return true;
        }
        if (op.dropout_per_mille < 0 || op.dropout_per_mille >= 1000) {
            operation(o) << "drops " << op.dropout_per_mille << " of 1000: dropout must be at least 0 and below 1";
            return true;
        }
        if (op.epsilon_e9 < 1) {
            operation(o) << "has an epsilon of " << op.epsilon_e9 << " billionths: it must be at least 1";
            return true;
        }
        if (heads_are_wrong(o)) {
            return true;
        }
        if (auto const wanted = shapes_of(op).in_width; wanted >= 0 && wanted != op.in_width) {
            operation(o) << "must take " << wanted << " columns to give " << op.out_width << ", not " << op.in_width;
            return true;
        }
        return false;
    }

    /// The slots that it reads or writes: as many as it has, those that there are, and as wide as it takes them.
    constexpr bool slots_do_not_fit(std::size_t o, std::array<int, 2> const& slots, std::array<std::int64_t, 2> const& widths, char const* verb)
    {
        auto const count = static_cast<int>(layer.slot_widths.size());
        for (std::size_t i = 0; i < 2; ++i) {
            auto const slot = slots[i];
            if ((slot == no_slot) != (widths[i] < 0)) {
                operation(o) << verb << (slot == no_slot ? " one slot too few" : " one slot too many");
                return true;
            }
            if (slot != no_slot && (slot < 0 || slot >= count)) {
                operation(o) << verb << " slot " << slot << ", but the layer has " << count;
                return true;
            }
            if (slot != no_slot && width_of(slot) != widths[i]) {
                operation(o) << verb << " slot " << slot << ", which must be " << widths[i] << " columns wide, but it is " << width_of(slot);
                return true;
            }
        }
        return false;
    }

    constexpr bool parameters_do_not_fit(std::size_t o)
    {
        auto const wanted = shapes_of(layer.ops[o]).parameters;
        auto const count = static_cast<int>(layer.parameters.size());
        for (std::size_t i = 0; i < 2; ++i) {
            auto const number = layer.ops[o].parameters[i];
            auto const& want = wanted[i];
            if (number == no_parameter) {
                if (want.is == wanted_parameter::presence::required) {
                    operation(o) << "needs a parameter of ";
                    add_shape(want.shape, want.any_rows);
                    return true;
                }
                continue;
            }
            if (number < 0 || number >= count) {
                operation(o) << "uses parameter " << number << ", but the layer has " << count;
                return true;
            }
            auto const& p = layer.parameters[static_cast<std::size_t>(number)];
            if (want.is == wanted_parameter::presence::none) {
                operation(o) << "uses parameter '" << p.name << "', but takes none there";
                return true;
            }
            if (p.shape.columns != want.shape.columns || (want.any_rows ? p.shape.rows < 1 : p.shape.rows != want.shape.rows)) {
                operation(o) << "uses parameter '" << p.name << "', which must be ";
                add_shape(want.shape, want.any_rows) << ", but it is ";
                add_shape(p.shape);
                return true;
            }
        }
        return false;
    }

    constexpr bool is_wrong()
    {
        if (slots_are_wrong()) {
            return true;
        }
        for (std::size_t o = 0; o < layer.ops.size(); ++o) {
            auto const& op = layer.ops[o];
            if (operation_is_wrong(o)) {
                return true;
            }
            auto const wanted = shapes_of(op);
            if (slots_do_not_fit(o, op.x, wanted.x, "reads") || slots_do_not_fit(o, op.z, wanted.z, "writes") || parameters_do_not_fit(o)) {
                return true;
            }
        }
        return false;
    }
};

}  // namespace rheo::inline v0::detail
