#pragma once
// SPDX-License-Identifier: Apache-2.0

// The layout of a job's committed state: a rank that holds a layer holds all tensors of that layer whole, in all roles. Recovery, joining and
// leaving ranks and safety copies go from one such layout to another by plan_reshard.

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/reshard/array_layout.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/tensor/nd_box.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

using role_formats = std::array<element_format, tensor_roles>;

/// How the committed state of a parameter is kept, and so travels.
struct state_formats {
    role_formats roles;
    element_format copy;  ///< that stages read, where it is state of its own (committed_roles)
};

constexpr state_formats committed_formats_of(dtype_policy const& policy)
{
    element_format const kept{policy.master};
    return {{kept, kept, kept, element_format{}}, element_format{policy.storage}};
}

inline constexpr state_formats committed_formats = committed_formats_of(fp32);

constexpr bytes element_bytes(role_formats const& formats)
{
    bytes sum;
    for (int role = 0; role < tensor_roles; ++role) {
        sum += formats[static_cast<std::size_t>(role)].size;
    }
    return sum;
}

/// The formats of a tensor's committed roles.
constexpr role_formats formats_of(tensor_info const& tensor, state_formats const& formats)
{
    auto roles = formats.roles;
    if (tensor.committed == committed_roles::copy) {
        roles[static_cast<std::size_t>(tensor_role::parameter)] = formats.copy;
    }
    for (int role = 0; role < tensor_roles; ++role) {
        if (!tensor.is_parameter || !has_role(tensor.committed, static_cast<tensor_role>(role))) {
            roles[static_cast<std::size_t>(role)] = {};
        }
    }
    return roles;
}

/// The tensors of a collection by their numbers. The loss has no committed state, so it has no roles. Names that a layout has no room for are left out.
template <class OnlyWhenCalled = void>
constexpr std::vector<layout_tensor> layout_tensors(collection const& state, state_formats const& formats)
{
    std::vector<layout_tensor> tensors(state.tensors.size());
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        auto const& tensor = state.tensors[t];
        if (tensor.name.size() < sizeof tensor_name::letters) {
            tensors[t].name = tensor.name;
        }
        tensors[t].shape = {tensor.shape.rows, tensor.shape.columns};
        tensors[t].element = formats_of(tensor, formats);
    }
    return tensors;
}

/// The whole tensors that a holder of these layers holds, ascending: those of its layers and those shared with one
/// of them. The loss has no committed state and is left out. @param layers ascending
template <class OnlyWhenCalled = void>
constexpr std::vector<array_part> whole_parts(collection const& state, array_view<layer_id const> layers)
{
    std::vector<char> has(layers.empty() ? 0 : at(layers.back()) + 1, 0);
    for (auto const layer : layers) {
        has[at(layer)] = 1;
    }
    std::vector<array_part> parts;
    for (std::size_t t = 0; t < state.tensors.size(); ++t) {
        auto const& tensor = state.tensors[t];
        bool held = false;
        for (auto const layer : tensor.layers) {
            held = held || (at(layer) < has.size() && has[at(layer)] != 0);
        }
        if (held && tensor.is_parameter) {
            parts.push_back({tensor_id{static_cast<std::int32_t>(t)}, {{0, tensor.shape.rows}, {0, tensor.shape.columns}}});
        }
    }
    return parts;
}

/// The layers of a rank.
struct rank_layers {
    rank_id rank;
    array_view<layer_id const> layers;  ///< ascending
};

/// Ranks with the same layers are one place; those without any have none.
template <class OnlyWhenCalled = void>
constexpr array_layout state_layout(collection const& state, std::vector<layout_tensor> tensors, std::vector<rank_layers> const& ranks)
{
    array_layout layout{std::move(tensors), {}};
    std::vector<array_view<layer_id const>> layers_of;  // place -> its layers
    for (auto const& one : ranks) {
        std::size_t place = 0;
        auto const same = [&](array_view<layer_id const> other) {
            bool equal = other.size() == one.layers.size();
            for (std::size_t i = 0; equal && i < other.size(); ++i) {
                equal = other[i] == one.layers[i];
            }
            return equal;
        };
        while (place < layers_of.size() && !same(layers_of[place])) {
            ++place;
        }
        if (one.layers.empty()) {
            continue;
        }
        if (place == layers_of.size()) {
            layers_of.push_back(one.layers);
            layout.places.push_back({{}, whole_parts(state, one.layers)});
        }
        layout.places[place].ranks.push_back(one.rank);
    }
    return layout;
}

}  // namespace rheo::inline v0
