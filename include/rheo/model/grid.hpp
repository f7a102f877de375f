#pragma once
// SPDX-License-Identifier: Apache-2.0

// The grid of shards over the width of a model (sharding.hpp cuts a layer). All layers have the same one. It decides the bits, as the slices of sequences
// do; how many ranks have the shards of a stage does not.

#include <cstddef>
#include <string>

#include "rheo/model/model.hpp"
#include "rheo/model/sharding.hpp"

namespace rheo::inline v0 {

/// The shards of the model's grid.
constexpr int grid_of(model_description const& model) { return model.layers.empty() ? 1 : model.layers.front().shards; }

/// Why the model cannot be cut into a grid, and which layer; empty: it can. @pre check(model) has no fault
template <class OnlyWhenCalled = void>
std::string grid_error(model_description const& model, int shards)
{
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
        if (auto const fault = sharding_error(model.layers[l], shards); !fault.empty()) {
            return "layer " + std::to_string(l) + " (" + std::string{model.layers[l].name} + "): " + std::string{fault.view()};
        }
    }
    return {};
}

/// The model on a grid. Its first values are those of every other grid; what it computes has the bits of this one. @pre grid_error is empty
template <class OnlyWhenCalled = void>
constexpr model_description on_grid(model_description model, int shards)
{
    for (auto& layer : model.layers) {
        layer.shards = shards;
    }
    return model;
}

}  // namespace rheo::inline v0
