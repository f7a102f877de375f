#pragma once
// SPDX-License-Identifier: Apache-2.0

// How much slower ranks are than their devices and links.

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/simulate/cluster/cluster_links.hpp"
#include "rheo/simulate/cluster/cluster_model.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "rheo/simulate/network/rank_links.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// Rank -> factor on a time; ranks beyond the end: 1.
using slow_factors = std::vector<double>;

constexpr double factor_of(slow_factors const& slow, rank_id rank) { return at(rank) < slow.size() ? slow[at(rank)] : 1.0; }

struct rank_slowness {
    slow_factors computing{};  ///< on the time of computations
    slow_factors links{};      ///< on the time that a byte takes on the rank's links

    friend bool operator==(rank_slowness const&, rank_slowness const&) = default;
};

/// The links of all ranks of a cluster; nothing where all are as their levels say.
template <class Link>
std::optional<rank_links<Link>> links_of(cluster_model const& cluster, slow_factors const& slow)
{
    auto links = links_of<Link>(cluster);
    auto const levels = network_of<Link>(cluster);
    auto const ranks = ranks_of(array_view<network_level<Link> const>{levels});
    for (rank_id rank{0}; rank.value < ranks && at(rank) < slow.size(); ++rank) {
        for (std::size_t level = 0; level < levels.size() && slow[at(rank)] != 1.0; ++level) {
            if (!links) {
                links.emplace(array_view<network_level<Link> const>{levels});
            }
            (*links)(level, rank) = slowed_link((*links)(level, rank), slow[at(rank)]);
        }
    }
    return links;
}

}  // namespace rheo::inline v0
