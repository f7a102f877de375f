#pragma once
// SPDX-License-Identifier: Apache-2.0

// Pipelines of given sizes, on nodes of several ranks: in the order of their ranks two copies of a layer may come to stand on
// one node, which then is lost with both. Sizes and cuts stay; ranks exchange their places until each layer is on as many nodes as
// wanted, or until no single exchange brings any layer to a further node. (What no arrangement can do stays: a pipeline on a
// part of a node beside a part of the only other one.)

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "rheo/partition/cuts.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace detail {

/// How often each node holds each layer.
template <class OnlyWhenCalled = void>
class node_copies {
public:
    constexpr node_copies(std::size_t layers, std::size_t nodes, int wanted) : nodes_{nodes}, wanted_{wanted}, held_(layers * nodes, 0), distinct_(layers, 0)
    {
        missing_ = static_cast<int>(layers) * wanted;
    }

    constexpr void add(array_view<layer_span const> spans, std::size_t node)
    {
        for (auto const l : layers_in(spans)) {
            if (held_[at(l) * nodes_ + node]++ == 0) {
                missing_ -= distinct_[at(l)]++ < wanted_ ? 1 : 0;
            }
        }
    }

    constexpr void remove(array_view<layer_span const> spans, std::size_t node)
    {
        for (auto const l : layers_in(spans)) {
            if (--held_[at(l) * nodes_ + node] == 0) {
                missing_ += --distinct_[at(l)] < wanted_ ? 1 : 0;
            }
        }
    }

    /// Over all layers, the nodes that are wanted and not there.
    constexpr int missing() const { return missing_; }

private:
    std::size_t nodes_;
    int wanted_;
    int missing_;
    std::vector<int> held_;
    std::vector<int> distinct_;  ///< layer -> nodes
};

struct arranged_place {
    std::vector<layer_span> layers;
    rank_id rank;
};

constexpr std::size_t node_of_place(arranged_place const& place, int node_size) { return static_cast<std::size_t>(place.rank.value / node_size); }

template <class OnlyWhenCalled = void>
constexpr std::vector<arranged_place> places_of(array_view<pipeline_instance const> pipelines)
{
    std::vector<arranged_place> places;
    for (auto const& pipeline : pipelines) {
        auto const where = placement_of(pipeline);
        auto const ranks = ranks_of(pipeline);
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            places.push_back({layers_at(pipeline.cuts, where, static_cast<int>(r)), ranks[r]});
        }
    }
    return places;
}

template <class OnlyWhenCalled = void>
constexpr node_copies<> copies_on_nodes(std::vector<arranged_place> const& places, std::size_t layers, int node_size, int wanted)
{
    std::size_t nodes = 0;
    for (auto const& place : places) {
        nodes = std::max(nodes, node_of_place(place, node_size) + 1);
    }
    node_copies copies{layers, nodes, wanted};
    for (auto const& place : places) {
        copies.add(place.layers, node_of_place(place, node_size));
    }
    return copies;
}

}  // namespace detail

/// Over all layers, how many of `wanted` nodes do not hold it. Nodes have so many ranks each, numbered through.
/// @pre pipelines of the same model, node_size >= 1
template <class OnlyWhenCalled = void>
constexpr int missing_nodes(array_view<pipeline_instance const> pipelines, int node_size, int wanted)
{
    expects(node_size >= 1, "a node has at least one rank");
    return pipelines.empty() ? 0 : detail::copies_on_nodes(detail::places_of(pipelines), at(pipelines.front().cuts.back()), node_size, wanted).missing();
}

/// The same pipelines with ranks in other places, so that fewer nodes are missing; as they are where none is, or no exchange helps.
/// @pre as missing_nodes; a rank has one place. Cost: each exchange that helps takes ranks^2 x layers of a place.
template <class OnlyWhenCalled = void>
constexpr std::vector<pipeline_instance> arranged_by_nodes(std::vector<pipeline_instance> pipelines, int node_size, int wanted)
{
    expects(node_size >= 1, "a node has at least one rank");
    if (pipelines.empty()) {
        return pipelines;
    }
    auto places = detail::places_of(pipelines);
    auto copies = detail::copies_on_nodes(places, at(pipelines.front().cuts.back()), node_size, wanted);
    auto const exchange = [&](detail::arranged_place& a, detail::arranged_place& b) {
        copies.remove(a.layers, detail::node_of_place(a, node_size));
        copies.remove(b.layers, detail::node_of_place(b, node_size));
        std::swap(a.rank, b.rank);
        copies.add(a.layers, detail::node_of_place(a, node_size));
        copies.add(b.layers, detail::node_of_place(b, node_size));
    };
    for (bool helped = true; helped && copies.missing() > 0;) {
        helped = false;
        for (std::size_t a = 0; a < places.size() && copies.missing() > 0; ++a) {
            for (std::size_t b = a + 1; b < places.size(); ++b) {
                if (detail::node_of_place(places[a], node_size) == detail::node_of_place(places[b], node_size)) {
                    continue;
                }
                auto const before = copies.missing();
                exchange(places[a], places[b]);
                if (copies.missing() < before) {
                    helped = true;
                } else {
                    exchange(places[a], places[b]);
                }
            }
        }
    }
    std::size_t next = 0;
    for (auto& pipeline : pipelines) {
        auto const ranks = ranks_of(pipeline);
        for (auto& stage : pipeline.stages) {
            for (auto& rank : stage) {
                rank = places[next + static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin())].rank;
            }
        }
        next += ranks.size();
    }
    return pipelines;
}

}  // namespace rheo::inline v0
