#pragma once
// SPDX-License-Identifier: Apache-2.0

// How many bytes of committed state belong to which layers. A tensor that several layers share (a tied
// classifier) is one entry with several layers: a rank holds it when it holds any of them.

#include <algorithm>
#include <vector>

#include "rheo/topology/index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct tensor_bytes {
    std::vector<layer_id> layers;  ///< ascending
    bytes size;

    friend constexpr bool operator==(tensor_bytes const&, tensor_bytes const&) = default;
};

}  // namespace rheo::inline v0
