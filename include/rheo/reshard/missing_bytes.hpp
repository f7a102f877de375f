#pragma once
// SPDX-License-Identifier: Apache-2.0

// The bytes that ranks have to receive so that they hold what they are to hold, without a plan of who sends them.

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "rheo/reshard/tensor_bytes.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Tensors of the same layers together: as many bytes, fewer entries.
template <class OnlyWhenCalled = void>
std::vector<tensor_bytes> joined_by_layers(array_view<tensor_bytes const> tensors)
{
    std::map<std::vector<layer_id>, bytes> sums;
    for (auto const& tensor : tensors) {
        sums[tensor.layers] += tensor.size;
    }
    std::vector<tensor_bytes> joined;
    for (auto const& [layers, size] : sums) {
        joined.push_back({layers, size});
    }
    return joined;
}

/// What all ranks together miss. A rank holds a tensor if it holds one of its layers. @param now, after ascending by rank
/// Cost: ranks x tensors.
template <class OnlyWhenCalled = void>
bytes missing_bytes(array_view<rank_holdings const> now, array_view<rank_holdings const> after, array_view<tensor_bytes const> tensors)
{
    std::size_t layers = 0;
    for (auto const& tensor : tensors) {
        for (auto const layer : tensor.layers) {
            layers = std::max(layers, at(layer) + 1);
        }
    }
    enum : char { none, is_wanted, is_held };
    std::vector<char> marks(layers);
    bytes missing;
    auto held = now.begin();
    for (auto const& wanted : after) {
        std::fill(marks.begin(), marks.end(), none);
        for (auto const layer : wanted.layers) {
            marks[at(layer)] = is_wanted;
        }
        while (held != now.end() && held->rank < wanted.rank) {
            ++held;
        }
        for (std::size_t l = 0; held != now.end() && held->rank == wanted.rank && l < held->layers.size(); ++l) {
            marks[at(held->layers[l])] |= is_held;
        }
        for (auto const& tensor : tensors) {
            int found = none;
            for (auto const layer : tensor.layers) {
                found |= marks[at(layer)];
            }
            missing += found == is_wanted ? tensor.size : bytes{};
        }
    }
    return missing;
}

}  // namespace rheo::inline v0
