#pragma once
// SPDX-License-Identifier: Apache-2.0

// Links that are not those of their level: a rank has its own link in each level, which counts for the messages that the rank sends, receives or passes on.
// A link between two ranks is as slow as the slower of the two. A message of a rank with slow links holds the links that it shares with others for longer.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/simulate/network/integer_link.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "rheo/simulate/network/route.hpp"
#include "rheo/topology/link.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// The link between an end with one link and an end with another one.
constexpr modelled_link slower_link(modelled_link a, modelled_link b) { return {std::max(a.latency, b.latency), std::min(a.bandwidth, b.bandwidth)}; }
constexpr integer_link slower_link(integer_link a, integer_link b) { return {std::max(a.latency_ns, b.latency_ns), {std::min(a.rate.count, b.rate.count)}}; }

/// Two links one after the other, as one.
constexpr modelled_link joined_links(modelled_link a, modelled_link b) { return {a.latency + b.latency, std::min(a.bandwidth, b.bandwidth)}; }
constexpr integer_link joined_links(integer_link a, integer_link b) { return {a.latency_ns + b.latency_ns, {std::min(a.rate.count, b.rate.count)}}; }

/// The link at 1 / `factor` of its rate.
constexpr modelled_link slowed_link(modelled_link link, double factor) { return {link.latency, {link.bandwidth.count / factor}}; }
constexpr integer_link slowed_link(integer_link link, double factor) { return {link.latency_ns, {link.rate.count / factor}}; }

template <class Link = modelled_link>
class rank_links {
public:
    /// All ranks have the links of their levels. @pre network_fault(levels) is empty
    explicit rank_links(array_view<network_level<Link> const> levels)
    {
        std::int32_t stride = 1;
        auto const ranks = static_cast<std::size_t>(ranks_of(levels));
        for (auto const& level : levels) {
            levels_.push_back({stride, level.topology, std::vector<Link>(ranks, level.link)});
            stride *= level.members;
        }
    }

    Link& operator()(std::size_t level, rank_id rank) { return levels_[level].links[at(rank)]; }
    Link const& operator()(std::size_t level, rank_id rank) const { return levels_[level].links[at(rank)]; }

    /// The link that a message takes with a hop of its route. @pre hop < hops of the route
    Link of_hop(network_route const& route, rank_id from, rank_id to, std::int32_t hop) const
    {
        auto const& level = levels_[static_cast<std::size_t>(route.level)];
        if (level.topology == network_topology::switched) {
            return level.links[at(hop == 0 ? from : to)];
        }
        auto const end = hop + 1 == route.hops ? to : passed(level, route, from, hop + 1);
        return slower_link(level.links[at(hop == 0 ? from : passed(level, route, from, hop))], level.links[at(end)]);
    }

    /// All links of the route as one.
    Link of_way(network_route const& route, rank_id from, rank_id to) const
    {
        auto way = of_hop(route, from, to, 0);
        for (std::int32_t hop = 1; hop < route.hops; ++hop) {
            way = joined_links(way, of_hop(route, from, to, hop));
        }
        return way;
    }

    friend bool operator==(rank_links const&, rank_links const&) = default;

private:
    struct level_links {
        std::int32_t stride;  ///< ranks of a member
        network_topology topology;
        std::vector<Link> links;  ///< by rank

        friend bool operator==(level_links const&, level_links const&) = default;
    };

    /// The rank that passes the message on before a hop on a ring: the one with the sender's place in its member.
    static rank_id passed(level_links const& level, network_route const& route, rank_id from, std::int32_t hop)
    {
        auto const place = static_cast<std::int32_t>((std::int64_t{route.first} + std::int64_t{hop} * route.step) % route.members);
        return rank_id{from.value + (place - route.first) * level.stride};
    }

    std::vector<level_links> levels_;
};

}  // namespace rheo::inline v0
