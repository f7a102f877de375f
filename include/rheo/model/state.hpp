#pragma once
// SPDX-License-Identifier: Apache-2.0

// From a model to the collection of its state: one tensor per distinct parameter name, one use per
// (operation, parameter), and the loss. Layers that name the same parameter share the tensor. Fusing
// keeps parameters and their order, so a fused and an unfused model have the same collection.

#include <algorithm>
#include <cstddef>
#include <string>

#include "rheo/model/grid.hpp"
#include "rheo/model/layer_shards.hpp"
#include "rheo/model/model.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// The name of the tensor that sums the training loss.
inline constexpr std::string_view loss_name = "loss";

namespace detail {

template <class OnlyWhenCalled = void>
tensor_id find_or_add(collection& state, tensor_info const& tensor)
{
    for (std::size_t i = 0; i < state.tensors.size(); ++i) {
        if (state.tensors[i].name == tensor.name) {
            expects(state.tensors[i].shape == tensor.shape && state.tensors[i].part == tensor.part,
                    "two layers name the same parameter but give it different shapes, or cut it differently");
            return tensor_id{static_cast<std::int32_t>(i)};
        }
    }
    state.tensors.push_back(tensor);
    return tensor_id{static_cast<std::int32_t>(state.tensors.size()) - 1};
}

template <class OnlyWhenCalled = void>
void add_use(collection& state, tensor_info const& tensor, use_info use)
{
    use.tensor = find_or_add(state, tensor);
    auto& entry = state.tensors[at(use.tensor)];
    entry.uses.push_back(use_id{static_cast<std::int32_t>(state.uses.size())});
    if (entry.layers.empty() || entry.layers.back() != use.layer) {
        entry.layers.push_back(use.layer);
    }
    state.uses.push_back(use);
}

}  // namespace detail

namespace detail {

/// A parameter of a shard as a tensor: the whole one where the shard has all of it, else a part with the shards that hold it in its name.
template <class OnlyWhenCalled = void>
tensor_info tensor_of(layer_description const& layer, shard_parameter const& share, collection const& on_grid_of_one)
{
    auto const& p = layer.parameters[static_cast<std::size_t>(share.of)];
    tensor_info tensor{full_name(layer, p), share.shape, p.initial, p.decays, true, {}, {}, {}};
    auto const same = [&](tensor_info const& other) { return other.name == tensor.name; };
    auto const number = std::find_if(on_grid_of_one.tensors.begin(), on_grid_of_one.tensors.end(), same) - on_grid_of_one.tensors.begin();
    tensor.part = {tensor.name, p.shape, share.pieces, tensor_id{static_cast<std::int32_t>(number)}};
    if (share.shape != p.shape) {
        auto const last = share.holders.end - 1;
        tensor.name += "[" + std::to_string(share.holders.begin) + (last > share.holders.begin ? "-" + std::to_string(last) : "") + " of " +
                       std::to_string(layer.shards) + "]";
    }
    return tensor;
}

/// The uses of a layer on a grid: for each operation and parameter one for each shard that contributes.
template <class OnlyWhenCalled = void>
void add_uses_of_shards(collection& state, layer_description const& layer, layer_id id, collection const& on_grid_of_one)
{
    auto const all = shards_of(layer);
    for (std::size_t o = 0; o < all.ops(); ++o) {
        for (std::size_t i = 0; i < 2; ++i) {
            for (int j = 0; j < layer.shards; ++j) {
                auto const& shard = all.shards[static_cast<std::size_t>(j)];
                if (auto const number = shard.ops[o].own.parameters[i]; number != no_parameter) {
                    add_use(state, tensor_of(layer, shard.parameters[static_cast<std::size_t>(number)], on_grid_of_one), {{}, id, number, j});
                }
            }
        }
        if (auto const kind = all.first().ops[o].own.kind; kind == op_kind::cross_entropy || kind == op_kind::loss_gradient) {
            for (int j = 0; j < layer.shards; ++j) {  // each counts the targets in its part of the vocabulary
                add_use(state, tensor_info{std::string{loss_name}, {1, 2}, {}, false, false, {}, {}, {}}, {{}, id, no_parameter, j});
            }
        }
    }
}

}  // namespace detail

/// All tensors and uses of a model, in layer order, the loss last. On a grid of shards a tensor is the part of a parameter that one shard has, or several
/// share; each shard that contributes to it is a use.
template <class OnlyWhenCalled = void>
collection state_of(model_description const& model)
{
    if (grid_of(model) > 1) {
        auto const alone = state_of(on_grid(model, 1));
        collection state;
        for (std::size_t l = 0; l < model.layers.size(); ++l) {
            detail::add_uses_of_shards(state, model.layers[l], layer_id{static_cast<std::int32_t>(l)}, alone);
        }
        return state;
    }
    collection state;
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
        auto const& layer = model.layers[l];
        layer_id const id{static_cast<std::int32_t>(l)};
        for (auto const& o : layer.ops) {
            for (auto const number : o.parameters) {
                if (number == no_parameter) {
                    continue;
                }
                auto const& p = layer.parameters[static_cast<std::size_t>(number)];
                tensor_info const tensor{full_name(layer, p), p.shape, p.initial, p.decays, true, {}, {}, {}};
                detail::add_use(state, tensor, {{}, id, number, 0});
            }
            if (o.kind == op_kind::cross_entropy || o.kind == op_kind::loss_gradient) {
                tensor_info const loss{std::string{loss_name}, {1, 2}, {}, false, false, {}, {}, {}};
                detail::add_use(state, loss, {{}, id, no_parameter, 0});
            }
        }
    }
    return state;
}

/// The tensors that a holder of the layers [first, last) holds, ascending.
template <class OnlyWhenCalled = void>
std::vector<tensor_id> tensors_of(collection const& state, layer_id first, layer_id last)
{
    std::vector<tensor_id> result;
    for (std::size_t t = 0; t < state.tensors.size(); ++t) {
        auto const& layers = state.tensors[t].layers;
        if (std::any_of(layers.begin(), layers.end(), [&](layer_id l) { return l >= first && l < last; })) {
            result.push_back(tensor_id{static_cast<std::int32_t>(t)});
        }
    }
    return result;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template collection state_of<>(model_description const&);
#endif

}  // namespace rheo::inline v0
