#pragma once
// SPDX-License-Identifier: Apache-2.0

// The links of a cluster's ranks: those of the levels, and those of nodes that differ.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rheo/simulate/cluster/cluster_model.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "rheo/simulate/network/rank_links.hpp"
#include "rheo/topology/link.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// The link that a node has in a level. @pre cluster_fault is empty
inline modelled_link link_of(cluster_model const& cluster, std::size_t level, std::int32_t node)
{
    auto const* const different = difference_of(cluster, node);
    bool const differs = different != nullptr && level < different->links.size() && different->links[level];
    return differs ? *different->links[level] : cluster.levels[level].network.link;
}

/// The links of all ranks; nothing where all are as their levels say. @pre cluster_fault is empty
template <class Link>
std::optional<rank_links<Link>> links_of(cluster_model const& cluster)
{
    if (!has_different_links(cluster)) {
        return std::nullopt;
    }
    auto const levels = network_of<Link>(cluster);
    rank_links<Link> links{array_view<network_level<Link> const>{levels}};
    auto const node_size = cluster.levels.front().network.members;
    for (auto const& d : cluster.different) {
        for (std::size_t level = 0; level < d.links.size(); ++level) {
            for (rank_id rank{d.first * node_size}; d.links[level] && rank.value < (d.last + 1) * node_size; ++rank) {
                links(level, rank) = link_as<Link>(*d.links[level]);
            }
        }
    }
    return links;
}

}  // namespace rheo::inline v0
