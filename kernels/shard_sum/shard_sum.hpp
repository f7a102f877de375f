#pragma once
// SPDX-License-Identifier: Apache-2.0

// The sum of what the shards of a layer computed apart, each alone: products whose inner dimension is cut. Values are added in the type that is computed
// in, by the tree of shard_grid.hpp, so the sum has the same bits however shards are spread over ranks; then the bias, then one rounding to what is
// stored. What comes in are nodes of the tree: single shards, or sums of several that another rank has added. With one shard it is the product with its
// bias, bit by bit.

#include <array>
#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/tensor/shard_grid.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// A node of the tree: what `shards` shards that follow one another add up to.
template <class Compute>
struct shard_node {
    std::int64_t shards = 1;
    Compute const* values = nullptr;  // [rows, width]
};

template <dtype_policy Policy = fp32>
struct shard_sum_arguments {
    std::int64_t rows;
    std::int64_t width;
    std::int64_t count;                                                                      ///< of nodes
    std::array<shard_node<compute_t<Policy>>, static_cast<std::size_t>(most_shards)> nodes;  ///< in the order of their shards
    storage_t<Policy> const* bias = nullptr;                                                 // [width], or null
    storage_t<Policy>* output = nullptr;                                                     // [rows, width], of the stored type; or null
    compute_t<Policy>* node = nullptr;  // [rows, width], where output is null: the sum as a node, without bias and rounding; may be the first node's values
};

/// In which order the nodes are added. @pre they are nodes of the tree over all of their shards
template <dtype_policy Policy>
constexpr tree_order order_of(shard_sum_arguments<Policy> const& a)
{
    expects(a.count >= 1 && a.count <= most_shards, "a sum over shards has 1 to 16 nodes");
    expects((a.output == nullptr) != (a.node == nullptr), "a sum over shards is stored, or it is a node");
    expects(a.bias == nullptr || a.output != nullptr, "the bias is added to the sum of all shards, not to a node");
    fixed_vector<std::int64_t, static_cast<std::size_t>(most_shards)> shards;
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.count); ++i) {
        shards.push_back(a.nodes[i].shards);
    }
    auto const order = order_of_nodes(shards);
    expects(order.is_tree, "a sum over shards takes the nodes of their tree, in order");
    return order;
}

namespace definition {

/// T(begin, end) of one element; `next` is the first node that is not yet in a sum.
template <dtype_policy Policy>
compute_t<Policy> shard_tree(shard_sum_arguments<Policy> const& a, shard_range node, std::int64_t element, std::size_t& next)
{
    if (a.nodes[next].shards == node.count()) {
        return a.nodes[next++].values[element];
    }
    auto const middle = tree_middle(node);
    auto const left = shard_tree(a, {node.begin, middle}, element, next);
    return left + shard_tree(a, {middle, node.end}, element, next);
}

template <dtype_policy Policy>
void shard_sum(shard_sum_arguments<Policy> const& a)
{
    static_cast<void>(order_of(a));
    std::int64_t shards = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.count); ++i) {
        shards += a.nodes[i].shards;
    }
    for (std::int64_t i = 0; i < a.rows * a.width; ++i) {
        std::size_t next = 0;
        auto sum = shard_tree(a, {0, shards}, i, next);
        if (a.bias != nullptr) {
            sum += compute_t<Policy>(a.bias[i % a.width]);
        }
        if (a.output != nullptr) {
            a.output[i] = static_cast<storage_t<Policy>>(sum);
        } else {
            a.node[i] = sum;
        }
    }
}

}  // namespace definition

class tile_pool;

namespace host {

void shard_sum(tile_pool& pool, shard_sum_arguments<> const& arguments);

}  // namespace host

namespace cuda {

// Policy is fp32 or bf16; pointers are the device's, and results are there when the stream is.
template <dtype_policy Policy>
void shard_sum(stream queue, shard_sum_arguments<Policy> const& arguments);

}  // namespace cuda
}  // namespace rheo::inline v0
