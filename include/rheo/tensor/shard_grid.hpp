#pragma once
// SPDX-License-Identifier: Apache-2.0

// The grid of shards over the width of a model: how counts are cut into shards, and in which order sums over shards are added. Both belong to the
// numerics, so neither knows how many ranks a stage has. The order is a fixed binary tree: T(a, a + 1) is what shard a computed, T(a, b) =
// T(a, m) + T(m, b) with m = a + the largest power of two below b - a. A rank with a run of shards adds up the nodes that lie whole in its run.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "rheo/tensor/fixed_vector.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

inline constexpr int most_shards = 16;

/// Shards [begin, end), or whatever else is cut: rows, columns, heads.
struct shard_range {
    std::int64_t begin = 0;
    std::int64_t end = 0;

    constexpr std::int64_t count() const { return end - begin; }
    friend constexpr bool operator==(shard_range, shard_range) = default;
};

/// What shard `shard` of `grid` has of `count`, as even as can be. @pre 0 <= shard < grid
constexpr shard_range cut_evenly(std::int64_t count, int grid, int shard) { return {count * shard / grid, count * (shard + 1) / grid}; }

/// The same at multiples of `unit`; the last shard has the short one. @pre as cut_evenly
constexpr shard_range cut_in_units(std::int64_t count, std::int64_t unit, int grid, int shard)
{
    auto const units = cut_evenly((count + unit - 1) / unit, grid, shard);
    return {std::min(count, units.begin * unit), std::min(count, units.end * unit)};
}

/// Where the tree parts a node of two shards or more: m of T(a, b) = T(a, m) + T(m, b).
constexpr std::int64_t tree_middle(shard_range node)
{
    return node.begin + static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(node.count() - 1)));
}

/// Nodes of the tree, in the order of their shards.
using tree_nodes = fixed_vector<shard_range, static_cast<std::size_t>(most_shards)>;

namespace detail {

constexpr void add_nodes_within(shard_range node, shard_range run, tree_nodes& nodes)
{
    if (node.end <= run.begin || run.end <= node.begin) {
        return;
    }
    if (run.begin <= node.begin && node.end <= run.end) {
        nodes.push_back(node);
        return;
    }
    auto const middle = tree_middle(node);
    add_nodes_within({node.begin, middle}, run, nodes);
    add_nodes_within({middle, node.end}, run, nodes);
}

}  // namespace detail

/// The largest nodes of the grid's tree that lie whole in a run of shards: what its rank sends. @pre 1 <= grid <= most_shards, the run lies in the grid
constexpr tree_nodes nodes_within(int grid, shard_range run)
{
    expects(grid >= 1 && grid <= most_shards && run.begin >= 0 && run.begin < run.end && run.end <= grid, "a run of shards lies in its grid, of at most 16");
    tree_nodes nodes;
    detail::add_nodes_within({0, grid}, run, nodes);
    return nodes;
}

/// The ranks that run a stage together, by the shards that each has: runs that follow one another and cover the grid. How many there are decides no bit.
struct shard_group {
    tree_nodes members{};  ///< none: one rank has all shards
    int self = 0;          ///< which of them is meant

    constexpr bool is_alone() const { return members.size() <= 1; }
    /// The shards of the member that is meant, on its grid.
    constexpr shard_range run(int grid) const { return members.empty() ? shard_range{0, grid} : members[static_cast<std::size_t>(self)]; }

    friend constexpr bool operator==(shard_group const&, shard_group const&) = default;
};

/// Whether the members' runs cover a grid, in order.
constexpr bool covers_grid(shard_group const& group, int grid)
{
    std::int64_t next = 0;
    for (auto const& run : group.members) {
        if (run.begin != next || run.end <= run.begin) {
            return false;
        }
        next = run.end;
    }
    return group.members.empty() || (next == grid && group.self >= 0 && static_cast<std::size_t>(group.self) < group.members.size());
}

/// What a run of shards has of rows that all shards of the grid have strips of.
constexpr shard_range rows_of(shard_range run, std::int64_t rows, int grid)
{
    return {cut_evenly(rows, grid, static_cast<int>(run.begin)).begin, cut_evenly(rows, grid, static_cast<int>(run.end) - 1).end};
}

/// How nodes that follow each other are added to one: as a stack. After node i is pushed, the upper two are added `merges[i]` times.
struct tree_order {
    bool is_tree = false;  ///< whether the nodes are those of the tree over all of their shards
    fixed_vector<int, static_cast<std::size_t>(most_shards)> merges{};
};

namespace detail {

template <class Counts>
constexpr bool add_merges(shard_range node, Counts const& shards, tree_order& order)
{
    auto const next = order.merges.size();
    if (next == shards.size() || shards[next] < 1 || shards[next] > node.count()) {
        return false;
    }
    if (shards[next] == node.count()) {
        order.merges.push_back(0);
        return true;
    }
    auto const middle = tree_middle(node);
    if (!add_merges({node.begin, middle}, shards, order) || !add_merges({middle, node.end}, shards, order)) {
        return false;
    }
    ++order.merges[order.merges.size() - 1];
    return true;
}

}  // namespace detail

/// The order for nodes of `shards[i]` shards each.
constexpr tree_order order_of_nodes(fixed_vector<std::int64_t, static_cast<std::size_t>(most_shards)> const& shards)
{
    std::int64_t all = 0;
    for (auto const count : shards) {
        all += count;
    }
    tree_order order;
    order.is_tree = all >= 1 && all <= most_shards && detail::add_merges({0, all}, shards, order) && order.merges.size() == shards.size();
    return order;
}

}  // namespace rheo::inline v0
