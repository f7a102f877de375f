#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which further failures a job survives as it stands: state is lost when all holders of some tensor are, so the tensor
// with the fewest holders decides, and the one held on the fewest nodes decides for whole nodes. A layer that only one
// node holds can be copied to another one; what is copied where is reported here, too.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "rheo/reshard/tensor_bytes.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct survivability {
    int ranks = 0;                    ///< any so many ranks can be lost at once
    int nodes = 0;                    ///< any so many nodes can be lost at once
    std::vector<rank_id> only_ranks;  ///< whose loss alone loses state, ascending
    std::vector<node_id> only_nodes;

    friend constexpr bool operator==(survivability const&, survivability const&) = default;
};

namespace detail {

constexpr bool holds_any(rank_holdings const& rank, array_view<layer_id const> layers)
{
    for (auto const own : rank.layers) {
        for (auto const layer : layers) {
            if (own == layer) {
                return true;
            }
        }
    }
    return false;
}

/// The holders of a tensor: places in the list of ranks.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::size_t> holders_of(tensor_bytes const& tensor, array_view<rank_holdings const> ranks)
{
    std::vector<std::size_t> holders;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (holds_any(ranks[r], tensor.layers)) {
            holders.push_back(r);
        }
    }
    return holders;
}

/// Layer -> its holders: places in the list of ranks, ascending.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<std::size_t>> holders_by_layer(array_view<rank_holdings const> ranks)
{
    std::vector<std::vector<std::size_t>> holders;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        for (auto const layer : ranks[r].layers) {
            if (at(layer) >= holders.size()) {
                holders.resize(at(layer) + 1);
            }
            if (auto& of_layer = holders[at(layer)]; of_layer.empty() || of_layer.back() != r) {
                of_layer.push_back(r);
            }
        }
    }
    return holders;
}

template <class Id>
constexpr void insert_once(std::vector<Id>& list, Id value)
{
    auto const place = std::lower_bound(list.begin(), list.end(), value);
    if (place == list.end() || *place != value) {
        list.insert(place, value);
    }
}

}  // namespace detail

/// What the holders can lose. `nodes` says where each of them is; without any, a node is a rank.
/// @pre a node for every rank, or none; each tensor has a holder. Cost: layers of all ranks, and holders x log of nodes for tensors; those behind one of the
/// same layers are free.
template <class OnlyWhenCalled = void>
constexpr survivability survivability_of(array_view<rank_holdings const> ranks, array_view<tensor_bytes const> tensors, array_view<node_id const> nodes = {})
{
    expects(nodes.empty() || nodes.size() == ranks.size(), "either every rank has a node, or none");
    survivability result{static_cast<int>(ranks.size()), static_cast<int>(ranks.size()), {}, {}};
    auto const by_layer = detail::holders_by_layer<OnlyWhenCalled>(ranks);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        if (t > 0 && tensors[t].layers == tensors[t - 1].layers) {  // most tensors of a layer are alike
            continue;
        }
        std::vector<std::size_t> holders;
        for (auto const layer : tensors[t].layers) {
            if (holders.empty() && at(layer) < by_layer.size()) {
                holders = by_layer[at(layer)];
            } else if (at(layer) < by_layer.size()) {
                for (auto const h : by_layer[at(layer)]) {
                    detail::insert_once(holders, h);
                }
            }
        }
        expects(!holders.empty(), "a tensor without a holder is lost already");
        std::vector<node_id> places;
        for (auto const h : holders) {
            detail::insert_once(places, nodes.empty() ? node_id{ranks[h].rank.value} : nodes[h]);
        }
        result.ranks = std::min(result.ranks, static_cast<int>(holders.size()) - 1);
        result.nodes = std::min(result.nodes, static_cast<int>(places.size()) - 1);
        if (holders.size() == 1) {
            detail::insert_once(result.only_ranks, ranks[holders.front()].rank);
        }
        if (places.size() == 1) {
            detail::insert_once(result.only_nodes, places.front());
        }
    }
    return result;
}

/// "any 1 rank and any 1 node can be lost", or which loss ends it.
template <class OnlyWhenCalled = void>
std::string to_string(survivability const& s)
{
    auto const list = [](auto const& ids) {
        std::string text;
        for (auto const id : ids) {
            text += (text.empty() ? "" : ", ") + std::to_string(id.value);
        }
        return text;
    };
    auto const many = [](int count, char const* noun) { return "any " + std::to_string(count) + " " + noun + (count == 1 ? "" : "s"); };
    if (s.ranks == 0) {
        return "the loss of rank " + list(s.only_ranks) + " would lose state";
    }
    if (s.nodes == 0) {
        return many(s.ranks, "rank") + " can be lost, but the loss of node " + list(s.only_nodes) + " would lose state";
    }
    return many(s.ranks, "rank") + " and " + many(s.nodes, "node") + " can be lost";
}

/// A layer of committed state that is kept by a second rank, because only one node holds it.
struct safety_copy {
    layer_id layer;
    rank_id from;
    rank_id to;
    bytes size;  ///< of all tensors of the layer

    friend constexpr bool operator==(safety_copy const&, safety_copy const&) = default;
};

namespace detail {

/// The node that holds all copies of a tensor, by a place in the list of ranks; ranks.size() when there are several.
template <class NodeOf>
constexpr std::size_t only_holder(tensor_bytes const& tensor, array_view<rank_holdings const> ranks, NodeOf const& node_of)
{
    auto const holders = holders_of(tensor, ranks);
    expects(!holders.empty(), "a tensor without a holder is lost already");
    for (auto const h : holders) {
        if (node_of(h) != node_of(holders.front())) {
            return ranks.size();
        }
    }
    return holders.front();
}

}  // namespace detail

/// Copies after which every tensor is on two nodes. Layers that have a tensor on one node only go whole, ascending, each to the rank of
/// another node that has received least so far, the lowest of several, from the lowest holder. Empty when all are on
/// two, or when there is only one node.
/// @pre as survivability_of. Cost: layers x tensors x ranks x layers.
template <class OnlyWhenCalled = void>
constexpr std::vector<safety_copy> safety_copies(array_view<rank_holdings const> ranks, array_view<tensor_bytes const> tensors,
                                                 array_view<node_id const> nodes = {})
{
    expects(nodes.empty() || nodes.size() == ranks.size(), "either every rank has a node, or none");
    std::vector<bytes> received(ranks.size());
    std::vector<safety_copy> copies;
    auto const node_of = [&](std::size_t r) { return nodes.empty() ? node_id{ranks[r].rank.value} : nodes[r]; };
    std::vector<layer_id> layers;
    for (auto const& tensor : tensors) {
        for (auto const layer : tensor.layers) {
            detail::insert_once(layers, layer);
        }
    }
    for (auto const layer : layers) {
        bytes size;
        auto held_at = ranks.size();
        for (auto const& tensor : tensors) {
            if (std::find(tensor.layers.begin(), tensor.layers.end(), layer) != tensor.layers.end()) {
                size += tensor.size;
                held_at = std::min(held_at, detail::only_holder(tensor, ranks, node_of));
            }
        }
        auto from = ranks.size();
        auto to = ranks.size();
        for (std::size_t r = 0; held_at < ranks.size() && r < ranks.size(); ++r) {
            bool const holds = detail::holds_any(ranks[r], array_view{&layer, 1});
            from = holds && from == ranks.size() ? r : from;
            if (!holds && node_of(r) != node_of(held_at) && (to == ranks.size() || received[r] < received[to])) {
                to = r;
            }
        }
        if (from < ranks.size() && to < ranks.size()) {
            received[to] += size;
            copies.push_back({layer, ranks[from].rank, ranks[to].rank, size});
        }
    }
    return copies;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template survivability survivability_of<>(array_view<rank_holdings const>, array_view<tensor_bytes const>, array_view<node_id const>);
#endif

}  // namespace rheo::inline v0
