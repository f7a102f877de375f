#pragma once
// SPDX-License-Identifier: Apache-2.0

// How much each node sends of what goes between nodes: the fullest node as little as possible, and, among the ways to do that, the fullest
// rank as little as possible. Ranks lie in nodes, so both limits are capacities of one network (Dinic 1970), and the least level of ranks
// is found by Newton's method on its minimum cuts, as in least_load.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "rheo/reshard/detail/least_load.hpp"

namespace rheo::inline v0::detail {

/// Maximum flows in a small directed network.
template <class OnlyWhenCalled = void>
class flow_network {
public:
    constexpr explicit flow_network(std::size_t vertices) : edges_of_(vertices), depth_(vertices, -1), next_(vertices, 0) {}

    /// @return its number, for flow()
    constexpr std::size_t add_edge(std::size_t from, std::size_t to, std::int64_t room)
    {
        edges_of_[from].push_back(edges_.size());
        edges_.push_back({to, room, room});
        edges_of_[to].push_back(edges_.size());
        edges_.push_back({from, 0, 0});
        return edges_.size() - 2;
    }

    constexpr std::int64_t flow(std::size_t edge) const { return edges_[edge].capacity - edges_[edge].room; }
    /// After max_flow: whether a vertex is on the source's side of a minimum cut.
    constexpr bool before_cut(std::size_t vertex) const { return depth_[vertex] >= 0; }

    constexpr std::int64_t max_flow(std::size_t source, std::size_t sink)
    {
        std::int64_t sum = 0;
        while (reach(source, sink)) {
            std::fill(next_.begin(), next_.end(), 0);
            while (auto const sent = push(source, sink, std::numeric_limits<std::int64_t>::max())) {
                sum += sent;
            }
        }
        return sum;
    }

private:
    struct room_to {
        std::size_t to;
        std::int64_t room;
        std::int64_t capacity;
    };

    constexpr bool reach(std::size_t source, std::size_t sink)
    {
        std::fill(depth_.begin(), depth_.end(), -1);
        std::vector<std::size_t> seen(1, source);
        depth_[source] = 0;
        for (std::size_t i = 0; i < seen.size(); ++i) {
            for (auto const e : edges_of_[seen[i]]) {
                if (edges_[e].room > 0 && depth_[edges_[e].to] < 0) {
                    depth_[edges_[e].to] = depth_[seen[i]] + 1;
                    seen.push_back(edges_[e].to);
                }
            }
        }
        return depth_[sink] >= 0;
    }

    constexpr std::int64_t push(std::size_t vertex, std::size_t sink, std::int64_t most)
    {
        if (vertex == sink) {
            return most;
        }
        for (; next_[vertex] < edges_of_[vertex].size(); ++next_[vertex]) {
            auto const e = edges_of_[vertex][next_[vertex]];
            if (edges_[e].room > 0 && depth_[edges_[e].to] == depth_[vertex] + 1) {
                if (auto const sent = push(edges_[e].to, sink, std::min(most, edges_[e].room)); sent > 0) {
                    edges_[e].room -= sent;
                    edges_[e ^ 1U].room += sent;
                    return sent;
                }
            }
        }
        return 0;
    }

    std::vector<room_to> edges_{};
    std::vector<std::vector<std::size_t>> edges_of_;
    std::vector<int> depth_;
    std::vector<std::size_t> next_;
};

/// Ranks of one class on one node.
struct node_cell {
    std::size_t node;
    std::int64_t ranks;
    std::size_t of_class;
};

/// The network of one level: source, items, cells, nodes, sink.
template <class OnlyWhenCalled = void>
class node_network {
public:
    constexpr node_network(std::vector<load_item> const& items, std::vector<node_cell> const& cells, std::size_t nodes, std::int64_t node_level)
        : items_{items}, cells_{cells}, nodes_{nodes}, node_level_{node_level}, network_{0}
    {
    }

    /// @return whether all items find room when no rank sends more than this
    constexpr bool fits(std::int64_t level)
    {
        network_ = flow_network<>{items_.size() + cells_.size() + nodes_ + 2};
        arcs_.clear();
        std::int64_t total = 0;
        for (std::size_t i = 0; i < items_.size(); ++i) {
            network_.add_edge(source(), i, items_[i].size);
            total += items_[i].size;
            for (auto const c : items_[i].bins) {
                arcs_.push_back(network_.add_edge(i, cell(c), items_[i].size));
            }
        }
        for (std::size_t c = 0; c < cells_.size(); ++c) {
            network_.add_edge(cell(c), node(cells_[c].node), level > total / cells_[c].ranks ? total : level * cells_[c].ranks);
        }
        for (std::size_t n = 0; n < nodes_; ++n) {
            network_.add_edge(node(n), sink(), node_level_);
        }
        return network_.max_flow(source(), sink()) == total;
    }

    /// After fits() said no: what the ranks of the minimum cut need at least.
    constexpr std::int64_t least_level() const
    {
        std::int64_t size = 0;
        std::int64_t ranks = 0;
        for (std::size_t i = 0; i < items_.size(); ++i) {
            size += network_.before_cut(i) ? items_[i].size : 0;
        }
        for (std::size_t n = 0; n < nodes_; ++n) {
            size -= network_.before_cut(node(n)) ? node_level_ : 0;
        }
        for (std::size_t c = 0; c < cells_.size(); ++c) {
            ranks += network_.before_cut(cell(c)) && !network_.before_cut(node(cells_[c].node)) ? cells_[c].ranks : 0;
        }
        return (size + ranks - 1) / ranks;
    }

    /// What each cell sends of each item.
    constexpr std::vector<std::vector<load_share>> shares() const
    {
        std::vector<std::vector<load_share>> result;
        std::size_t arc = 0;
        for (auto const& item : items_) {
            result.emplace_back();
            for (auto const c : item.bins) {
                if (auto const size = network_.flow(arcs_[arc++]); size > 0) {
                    result.back().push_back({c, size});
                }
            }
        }
        return result;
    }

private:
    constexpr std::size_t cell(std::size_t c) const { return items_.size() + c; }
    constexpr std::size_t node(std::size_t n) const { return items_.size() + cells_.size() + n; }
    constexpr std::size_t source() const { return items_.size() + cells_.size() + nodes_; }
    constexpr std::size_t sink() const { return source() + 1; }

    std::vector<load_item> const& items_;
    std::vector<node_cell> const& cells_;
    std::size_t nodes_;
    std::int64_t node_level_;
    flow_network<> network_;
    std::vector<std::size_t> arcs_{};
};

/// @param items with cells as bins @return shares of cells; the level is that of nodes
template <class OnlyWhenCalled = void>
constexpr divided_load balance_nodes(std::vector<load_item> const& items, std::vector<node_cell> const& cells, std::size_t nodes)
{
    std::vector<load_item> by_node;
    std::int64_t total = 0;
    std::int64_t ranks = 0;
    for (auto const& item : items) {
        by_node.push_back({item.size});
        for (auto const c : item.bins) {
            by_node.back().bins.push_back(cells[c].node);
        }
        auto& bins = by_node.back().bins;
        std::sort(bins.begin(), bins.end());
        bins.erase(std::unique(bins.begin(), bins.end()), bins.end());
        total += item.size;
    }
    for (auto const& cell : cells) {
        ranks += cell.ranks;
    }
    divided_load result{least_load(by_node, std::vector<std::int64_t>(nodes, 1)).level};
    node_network<> network{items, cells, nodes, result.level};
    for (auto level = (total + ranks - 1) / ranks; !network.fits(level);) {
        level = network.least_level();
    }
    result.shares = network.shares();
    return result;
}

}  // namespace rheo::inline v0::detail
