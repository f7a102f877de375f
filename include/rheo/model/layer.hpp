#pragma once
// SPDX-License-Identifier: Apache-2.0

// A layer: the unit that is cut, placed, copied and reduced. Its value lists operations, slots and
// parameters. A layer type is anything with `static constexpr layer_description describe()`: no base
// class, no registry. Two parameters of a model with the same full name are one (tied) tensor.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rheo/model/op.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/tensor/fixed_vector.hpp"

namespace rheo::inline v0 {

struct parameter {
    std::string_view name;  ///< within the layer
    tensor_shape shape;
    initial_values initial;
    bool decays = false;

    friend constexpr bool operator==(parameter const&, parameter const&) = default;
};

struct layer_description {
    std::string_view name{};
    std::string_view prefix{};  ///< of its parameters' names; `#` stands for the ordinal
    int ordinal = 0;            ///< how many layers of this prefix come before it in the model
    int in_width = 0;           ///< of slot 0; 0: the layer reads tokens
    int out_width = 0;          ///< of the last slot written; 0: the layer ends in the loss
    int output = no_slot;       ///< the slot that goes to the next layer
    fixed_vector<op, 16> ops{};
    fixed_vector<int, 16> slot_widths{};
    fixed_vector<parameter, 16> parameters{};
    int shards = 1;  ///< the grid over its width (model/sharding.hpp): it decides the bits, whatever ranks have the shards

    friend constexpr bool operator==(layer_description const&, layer_description const&) = default;
};

template <class Layer>
concept layer = requires {
    { Layer::describe() } -> std::same_as<layer_description>;
};

/// Adds a slot of the given width and returns its number.
constexpr int add_slot(layer_description& layer, int width)
{
    layer.slot_widths.push_back(width);
    return static_cast<int>(layer.slot_widths.size()) - 1;
}

/// Adds a parameter and returns its number.
constexpr int add_parameter(layer_description& layer, parameter const& p)
{
    layer.parameters.push_back(p);
    return static_cast<int>(layer.parameters.size()) - 1;
}

/// Adds an operation and gives it its place in the unfused list.
constexpr void add_op(layer_description& layer, op o)
{
    o.id = op_id{static_cast<std::int32_t>(layer.ops.size())};
    layer.ops.push_back(o);
}

/// The name of a parameter in the model: the layer's prefix with its ordinal, then its own name.
inline std::string full_name(layer_description const& layer, parameter const& p)
{
    std::string text;
    for (char const c : layer.prefix) {
        if (c == '#') {
            text += std::to_string(layer.ordinal);
        } else {
            text += c;
        }
    }
    return text.append(p.name);
}

}  // namespace rheo::inline v0
