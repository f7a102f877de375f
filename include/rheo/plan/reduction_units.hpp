#pragma once
// SPDX-License-Identifier: Apache-2.0

// The units in which gradients are summed over pipelines: one per layer, for the parameters that only
// this layer has, then one per tied parameter (on a grid of shards all its parts), whose holders are those of all its layers. A unit's number
// is the layer's, or the number of layers plus the tied parameter's place among them.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/schedule/transform/reductions.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct reduction_unit {
    std::vector<tensor_id> tensors;  ///< ascending; empty for a layer without parameters of its own
    std::vector<layer_id> layers;    ///< whose holders take part

    friend constexpr bool operator==(reduction_unit const&, reduction_unit const&) = default;
};

/// All units of a model with so many layers; the loss is in none (it travels with the scalars of the step).
template <class OnlyWhenCalled = void>
std::vector<reduction_unit> reduction_units(collection const& state, int layers)
{
    std::vector<reduction_unit> units(static_cast<std::size_t>(layers));
    for (int l = 0; l < layers; ++l) {
        units[static_cast<std::size_t>(l)].layers = {layer_id{l}};
    }
    for (std::size_t t = 0; t < state.tensors.size(); ++t) {
        auto const& tensor = state.tensors[t];
        tensor_id const id{static_cast<std::int32_t>(t)};
        if (!tensor.is_parameter) {
            continue;
        }
        if (tensor.layers.size() == 1) {
            units[at(tensor.layers.front())].tensors.push_back(id);
            continue;
        }
        auto const same = [&](reduction_unit const& unit) {
            return unit.layers == tensor.layers && parameter_name(state.tensors[at(unit.tensors.front())]) == parameter_name(tensor);
        };
        auto const known = std::find_if(units.begin() + layers, units.end(), same);
        if (known != units.end()) {
            known->tensors.push_back(id);
        } else {
            units.push_back({{id}, tensor.layers});
        }
    }
    return units;
}

/// Bytes of the sums that each holder puts into a unit's reduction.
template <class OnlyWhenCalled = void>
constexpr bytes sum_bytes(reduction_unit const& unit, collection const& state, dtype_policy const& policy)
{
    bytes sums;
    for (auto const tensor : unit.tensors) {
        sums += bytes{elements(state.tensors[at(tensor)].shape) * size_of(policy.accumulate)};
    }
    return sums;
}

/// Which units the stages of a pipeline with these cuts take part in: stage -> units, ascending, the stages of one copy of the model after those of the other.
template <class OnlyWhenCalled = void>
units_by_stage units_of_stages(std::vector<reduction_unit> const& units, std::vector<layer_id> const& cuts, int copies = 1)
{
    units_by_stage result(cuts.size() - 1);
    for (std::size_t u = 0; u < units.size(); ++u) {
        if (units[u].tensors.empty()) {
            continue;
        }
        for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
            for (auto const l : units[u].layers) {
                if (l >= cuts[s] && l < cuts[s + 1]) {
                    result[s].push_back(reduction_id{static_cast<std::int32_t>(u)});
                    break;
                }
            }
        }
    }
    auto const chain = result.size();
    for (std::size_t s = chain; s < chain * static_cast<std::size_t>(copies); ++s) {
        result.push_back(result[s - chain]);
    }
    return result;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template std::vector<reduction_unit> reduction_units<>(collection const&, int);
#endif

}  // namespace rheo::inline v0
