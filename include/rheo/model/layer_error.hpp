#pragma once
// SPDX-License-Identifier: Apache-2.0

// Why a layer cannot run, as one sentence: an operation that does not fit the slots and parameters that the layer declares would read and
// write beyond them, and one whose result is never read, or whose input another one reads in a way that cannot be shared, would train
// with wrong gradients. The compiler refuses a model type with it (model.hpp), and `run` a model value.

#include <array>
#include <cstddef>
#include <cstdint>

#include "rheo/model/layer.hpp"
#include "rheo/model/op_shapes.hpp"
#include "rheo/units/fixed_text.hpp"

namespace rheo::inline v0 {

/// Empty: there is none.
using layer_error = fixed_text<240>;

namespace detail {

/// Looks at one layer; each question returns true and leaves the sentence when there is a fault. Only then is text made: the compiler asks all of
/// this of each layer type.
struct layer_judge {
    layer_description const& layer;
    layer_error fault{};

    constexpr layer_error& operation(std::size_t o)
    {
        return fault << "operation " << static_cast<std::int64_t>(o) << " (" << name_of(layer.ops[o].kind) << ") ";
    }
    constexpr layer_error& add_shape(tensor_shape shape, bool any_rows = false)
    {
        if (any_rows) {
            fault << "n";
        } else {
            fault << shape.rows;
        }
        return fault << " x " << shape.columns;
    }
    constexpr int width_of(int slot) const { return layer.slot_widths[static_cast<std::size_t>(slot)]; }

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
        if (!turns && op.kind != op_kind::attention) {
            return false;
        }
        if (op.heads < 1 || op.kv_heads < 0 || op.heads % kv_heads_of(op) != 0) {
            operation(o) << "has " << op.heads << " heads and " << kv_heads_of(op) << " of keys and values, which must divide them";
            return true;
        }
        auto const parts = turns ? op.heads + 2 * kv_heads_of(op) : op.heads;  // heads of the output
        if (op.out_width % parts != 0) {
            operation(o) << "is " << op.out_width << " wide, which is no multiple of its " << parts << " heads";
            return true;
        }
        if (turns && (head_width(op) % 2 != 0 || op.rope_base < 1)) {
            operation(o) << "turns pairs of columns: its heads must be an even number wide, not " << head_width(op) << ", its base at least 1, not "
                         << op.rope_base;
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

    /// What is read was written before, and nothing is written twice.
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
                if (z != no_slot && (z == 0 || written[static_cast<std::size_t>(z)])) {
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
                bool const is_written_over = !adds_to_gradient(op.kind) && (has[static_cast<std::size_t>(x)] || op.x[0] == op.x[1]);
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
        return order_is_wrong() || gradients_are_wrong() || parameters_are_idle();
    }
};

}  // namespace detail

/// What is wrong with the layer's operations, against its slots and parameters and in their order; empty: nothing. Cost: operations x parameters.
template <class OnlyWhenCalled = void>
constexpr layer_error error_of(layer_description const& layer)
{
    detail::layer_judge judge{layer};
    static_cast<void>(judge.is_wrong());
    return judge.fault;
}

}  // namespace rheo::inline v0
