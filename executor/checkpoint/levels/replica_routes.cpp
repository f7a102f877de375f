// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/levels/replica_routes.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace rheo::inline v0 {

namespace {

/// The members of each node, by node.
std::vector<std::vector<rank_id>> by_node(std::span<rank_id const> members, int node_size)
{
    std::vector<std::vector<rank_id>> nodes;
    for (auto const rank : members) {
        if (nodes.empty() || nodes.back().front().value / node_size != rank.value / node_size) {
            nodes.emplace_back();
        }
        nodes.back().push_back(rank);
    }
    return nodes;
}

}  // namespace

int nodes_of(std::span<rank_id const> members, int node_size) { return static_cast<int>(by_node(members, node_size).size()); }

std::vector<replica_route> replica_routes(std::span<rank_id const> origins, std::span<rank_id const> members, int node_size, int copies)
{
    auto const nodes = by_node(members, node_size);
    std::vector<std::size_t> dealt(nodes.size(), 0);  // parts of each node so far
    std::map<std::pair<rank_id, rank_id>, int> between;
    std::vector<replica_route> routes;
    for (auto const origin : origins) {
        auto const of_origin = [&](auto const& node) { return std::find(node.begin(), node.end(), origin) != node.end(); };
        auto const own = static_cast<std::size_t>(std::find_if(nodes.begin(), nodes.end(), of_origin) - nodes.begin());
        if (own == nodes.size()) {
            continue;
        }
        auto const turn = dealt[own]++;
        auto from = origin;
        for (std::size_t c = 1; c <= static_cast<std::size_t>(copies) && c < nodes.size(); ++c) {
            auto const& node = nodes[(own + c) % nodes.size()];
            auto const to = node[turn % node.size()];
            routes.push_back({origin, from, to, between[{from, to}]++});
            from = to;
        }
    }
    return routes;
}

}  // namespace rheo::inline v0
