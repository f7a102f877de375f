#pragma once
// SPDX-License-Identifier: Apache-2.0

// How many bytes of committed state belong to which layers. A tensor that several layers share (a tied
// classifier) is one entry with several layers: a rank holds it when it holds any of them.

#include <vector>

#include "rheo/reshard/state_layout.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct tensor_bytes {
    std::vector<layer_id> layers;  ///< ascending
    bytes size;

    friend constexpr bool operator==(tensor_bytes const&, tensor_bytes const&) = default;
};

/// The parameters of a collection with what their committed roles take. The loss has no committed state and is left out.
template <class OnlyWhenCalled = void>
std::vector<tensor_bytes> tensor_bytes_of(collection const& state, state_formats const& formats)
{
    std::vector<tensor_bytes> result;
    for (auto const& tensor : state.tensors) {
        if (tensor.is_parameter) {
            result.push_back({tensor.layers, elements(tensor.shape) * element_bytes(formats_of(tensor, formats))});
        }
    }
    return result;
}

}  // namespace rheo::inline v0
