// SPDX-License-Identifier: Apache-2.0
// The tree over shards against the same tree built from its leaves, and what ranks send against a table that was reckoned apart.
#include "rheo/tensor/shard_grid.hpp"

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace rheo;

namespace {

/// The tree as text, from the leaves up: neighbours are joined in pairs, the last of an odd number is carried over.
std::string from_leaves(std::vector<std::string> nodes)
{
    while (nodes.size() > 1) {
        std::vector<std::string> next;
        for (std::size_t i = 0; i < nodes.size(); i += 2) {
            next.push_back(i + 1 < nodes.size() ? "(" + nodes[i] + nodes[i + 1] + ")" : nodes[i]);
        }
        nodes = next;
    }
    return nodes.front();
}

std::vector<std::string> leaves(shard_range run)
{
    std::vector<std::string> result;
    for (auto i = run.begin; i < run.end; ++i) {
        result.push_back(std::string(1, static_cast<char>('a' + i)));
    }
    return result;
}

/// What a stack that follows the order makes of the nodes.
std::string by_order(std::vector<std::string> const& nodes, tree_order const& order)
{
    std::vector<std::string> stack;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        stack.push_back(nodes[i]);
        for (int merge = 0; merge < order.merges[i]; ++merge) {
            auto const right = stack.back();
            stack.pop_back();
            stack.back() = "(" + stack.back() + right + ")";
        }
    }
    return stack.size() == 1 ? stack.front() : "";
}

constexpr fixed_vector<std::int64_t, 16> counts_of(tree_nodes const& nodes)
{
    fixed_vector<std::int64_t, 16> counts;
    for (auto const& node : nodes) {
        counts.push_back(node.count());
    }
    return counts;
}

}  // namespace

static_assert(tree_middle({0, 2}) == 1 && tree_middle({0, 7}) == 4 && tree_middle({4, 7}) == 6 && tree_middle({0, 8}) == 4 && tree_middle({0, 9}) == 8);
static_assert(cut_evenly(12, 5, 0) == shard_range{0, 2} && cut_evenly(12, 5, 4) == shard_range{9, 12});
static_assert(cut_in_units(100, 16, 3, 0) == shard_range{0, 32} && cut_in_units(100, 16, 3, 2) == shard_range{64, 100});
static_assert(nodes_within(8, {0, 8}).size() == 1 && nodes_within(8, {3, 6}).size() == 2 && nodes_within(6, {4, 6})[0] == shard_range{4, 6});

TEST_CASE("shard grid: any runs of ranks add up by one tree")
{
    for (int grid = 1; grid <= most_shards; ++grid) {
        auto const expected = from_leaves(leaves({0, grid}));
        for (int ranks = 1; ranks <= grid; ++ranks) {
            std::vector<std::string> sent;
            fixed_vector<std::int64_t, 16> counts;
            for (int rank = 0; rank < ranks; ++rank) {
                for (auto const& node : nodes_within(grid, cut_evenly(grid, ranks, rank))) {
                    // the rank adds up its own node from single shards
                    fixed_vector<std::int64_t, 16> single;
                    for (auto i = node.begin; i < node.end; ++i) {
                        single.push_back(1);
                    }
                    auto const order = order_of_nodes(single);
                    REQUIRE(order.is_tree);
                    sent.push_back(by_order(leaves(node), order));
                    counts.push_back(node.count());
                }
            }
            auto const order = order_of_nodes(counts);
            REQUIRE(order.is_tree);
            CHECK(by_order(sent, order) == expected);
        }
    }
}

TEST_CASE("shard grid: ranks send as few nodes as reckoned")
{
    // the mean number of nodes of a rank, for 2 to 8 ranks; 0: there are fewer shards
    struct line {
        int grid;
        double nodes[7];
    };
    for (auto const& [grid, nodes] : {line{4, {1, 1, 1, 0, 0, 0, 0}}, line{8, {1, 1.67, 1, 1.2, 1, 1, 1}}, line{16, {1, 2.33, 1, 1.8, 1.67, 1.57, 1}}}) {
        for (int ranks = 2; ranks <= std::min(8, grid); ++ranks) {
            std::size_t sent = 0;
            for (int rank = 0; rank < ranks; ++rank) {
                sent += nodes_within(grid, cut_evenly(grid, ranks, rank)).size();
            }
            INFO(grid << " shards of " << ranks << " ranks");
            CHECK(std::fabs(static_cast<double>(sent) / ranks - nodes[ranks - 2]) < 0.005);
        }
    }
}

TEST_CASE("shard grid: nodes of no tree are recognised")
{
    CHECK(order_of_nodes(counts_of(nodes_within(7, {0, 7}))).is_tree);
    auto const of = [](std::vector<std::int64_t> const& counts) {
        fixed_vector<std::int64_t, 16> nodes;
        for (auto const count : counts) {
            nodes.push_back(count);
        }
        return order_of_nodes(nodes).is_tree;
    };
    CHECK((of({4, 2, 1}) && of({2, 2, 3}) && of({1, 1, 2, 2, 1}) && of({16})));
    CHECK(!of({}));
    CHECK(!of({0}));
    CHECK(!of({1, 2}));
    CHECK(!of({2, 4}));
    CHECK(!of({3, 1}));
    CHECK(!of({2, -1}));
    CHECK(!of({16, 1}));
    CHECK_THROWS_AS(nodes_within(4, {2, 5}), precondition_error);
    CHECK_THROWS_AS(nodes_within(17, {0, 1}), precondition_error);
}

TEST_CASE("shard grid: shards tile what is cut")
{
    for (std::int64_t const count : {1, 16, 47, 100, 768, 50257}) {
        for (int grid = 1; grid <= most_shards; ++grid) {
            for (std::int64_t const unit : {1, 16}) {
                std::int64_t at = 0;
                for (int shard = 0; shard < grid; ++shard) {
                    auto const part = cut_in_units(count, unit, grid, shard);
                    CHECK((part.begin == at && part.end >= at && (part.end % unit == 0 || part.end == count)));
                    at = part.end;
                }
                CHECK(at == count);
            }
        }
    }
}
