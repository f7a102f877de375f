#pragma once
// SPDX-License-Identifier: Apache-2.0

// The network of a machine as levels from the inside out: devices in a node, nodes in a rack, and so on. Ranks are
// numbered with the innermost level first, so a rank's place in a level is one digit of its number.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "rheo/topology/link.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

enum class network_topology : unsigned char {
    switched,  ///< a link from and one to each member: two hops between any two
    ring,      ///< a link each way between neighbours; messages go the shorter way, the ascending one when both are equal
    full,      ///< a link each way between any two members
};

/// The names in files.
inline constexpr std::array<std::string_view, 3> network_topology_names{"switch", "ring", "full"};

constexpr std::string_view name_of(network_topology topology) { return network_topology_names[static_cast<std::size_t>(topology)]; }

/// One level. @tparam Link modelled_link or integer_link
template <class Link = modelled_link>
struct network_level {
    int members;  ///< of each group at this level
    network_topology topology;
    Link link;                 ///< of one link
    int links_per_member = 1;  ///< side by side wherever the topology has one; a message takes the one that is free first

    friend constexpr bool operator==(network_level const&, network_level const&) = default;
};

/// A rate above zero, a latency of at least zero, both finite.
constexpr bool is_usable_link(modelled_link link)
{
    constexpr auto most = std::numeric_limits<double>::max();
    return link.latency.count >= 0.0 && link.latency.count <= most && link.bandwidth.count > 0.0 && link.bandwidth.count <= most;
}

namespace detail {

constexpr std::int64_t most_network_ranks = std::int64_t{1} << 20;
constexpr std::int64_t most_network_links = std::int64_t{1} << 27;  ///< a 64-bit time each: 1 GiB

/// Bundles of links from one group of the level.
constexpr std::int64_t bundles_of(network_topology topology, std::int64_t members)
{
    return topology == network_topology::full ? members * members : 2 * members;
}

}  // namespace detail

/// All ranks of a network. @pre network_fault of the levels is empty
template <class Link>
constexpr int ranks_of(array_view<network_level<Link> const> levels)
{
    int ranks = 1;
    for (auto const& level : levels) {
        ranks *= level.members;
    }
    return ranks;
}

/// What is wrong with the levels of a network for `ranks` ranks (0: for any number), as a sentence; empty when nothing is.
template <class Link>
std::string network_fault(array_view<network_level<Link> const> levels, std::int64_t ranks = 0)
{
    if (levels.empty()) {
        return "a network has at least one level";
    }
    std::int64_t product = 1;
    for (std::size_t k = 0; k < levels.size(); ++k) {
        auto const& level = levels[k];
        auto const at = "level " + std::to_string(k) + " of the network ";
        if (level.members < 1 || level.links_per_member < 1) {
            return at + "has " + std::to_string(level.members) + " members with " + std::to_string(level.links_per_member) + " links each; both are at least 1";
        }
        if (!is_usable_link(level.link)) {
            return at + "has a link whose rate or latency cannot be: a rate is above zero, a latency at least zero, and both are finite";
        }
        if (level.members > detail::most_network_ranks / product) {
            return "the levels of the network multiply up to more than " + std::to_string(detail::most_network_ranks) + " ranks";
        }
        product *= level.members;
    }
    std::int64_t links = 0;
    for (auto const& level : levels) {
        auto const bundles = product / level.members * detail::bundles_of(level.topology, level.members);
        if (level.links_per_member > (detail::most_network_links - links) / bundles) {
            return "the network has more than " + std::to_string(detail::most_network_links) + " links; a full level has one for each pair of members";
        }
        links += bundles * level.links_per_member;
    }
    if (ranks > 0 && product != ranks) {
        return "the levels of the network multiply up to " + std::to_string(product) + " ranks, not to " + std::to_string(ranks);
    }
    return {};
}

}  // namespace rheo::inline v0
