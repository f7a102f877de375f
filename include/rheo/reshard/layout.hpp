#pragma once
// SPDX-License-Identifier: Apache-2.0

// A layout says which boxes of which tensors a rank has. Recovery, joining ranks and checkpoints all
// go from one layout to another; today every box is a whole tensor, but nothing here relies on that.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/tensor/box.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// A box of a tensor; `whole(shape)` is all of it.
struct tensor_part {
    tensor_id tensor;
    index_box box;

    friend constexpr bool operator==(tensor_part const&, tensor_part const&) = default;
};

/// What one rank holds or wants.
struct rank_parts {
    rank_id rank;
    std::vector<tensor_part> parts;

    friend constexpr bool operator==(rank_parts const&, rank_parts const&) = default;
};

/// The whole tensors that a holder of these layers holds, ascending: those of its layers and those shared with one
/// of them. The loss has no committed state and is left out.
template <class OnlyWhenCalled = void>
std::vector<tensor_part> whole_parts(collection const& state, array_view<layer_id const> layers)
{
    std::vector<tensor_part> parts;
    for (std::size_t t = 0; t < state.tensors.size(); ++t) {
        auto const& tensor = state.tensors[t];
        bool held = false;
        for (auto const own : tensor.layers) {
            for (auto const l : layers) {
                held = held || own == l;
            }
        }
        if (held && tensor.is_parameter) {
            parts.push_back({tensor_id{static_cast<std::int32_t>(t)}, whole(tensor.shape)});
        }
    }
    return parts;
}

}  // namespace rheo::inline v0
