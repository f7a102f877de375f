#pragma once
// SPDX-License-Identifier: Apache-2.0

// What shards computed, and their sum by a tree that is built from its leaves up: neighbours are added in pairs, the last of an odd number is carried over.

#include "kernels/shard_sum/shard_sum.hpp"
#include "support.hpp"

namespace support {

struct partials {
    std::int64_t rows;
    std::int64_t width;
    std::vector<floats> values;

    partials(int grid, std::int64_t r, std::int64_t w) : rows{r}, width{w}
    {
        for (int j = 0; j < grid; ++j) {
            values.push_back(normal(rows * width, static_cast<unsigned>(10 + j)));
        }
    }

    int grid() const { return static_cast<int>(values.size()); }

    /// The sum of single shards.
    template <rheo::dtype_policy Policy>
    rheo::shard_sum_arguments<Policy> arguments(rheo::shard_range node) const
    {
        rheo::shard_sum_arguments<Policy> a{.rows = rows, .width = width, .count = node.count(), .nodes = {}};
        for (auto j = node.begin; j < node.end; ++j) {
            a.nodes[size(j - node.begin)].values = values[size(j)].data();
        }
        return a;
    }

    floats from_leaves(floats const& bias) const
    {
        auto nodes = values;
        while (nodes.size() > 1) {
            std::vector<floats> next;
            for (std::size_t i = 0; i < nodes.size(); i += 2) {
                next.push_back(nodes[i]);
                for (std::size_t e = 0; i + 1 < nodes.size() && e < nodes[i].size(); ++e) {
                    next.back()[e] += nodes[i + 1][e];
                }
            }
            nodes = next;
        }
        for (std::size_t e = 0; e < nodes[0].size() && !bias.empty(); ++e) {
            nodes[0][e] += bias[e % bias.size()];
        }
        return nodes[0];
    }
};

}  // namespace support
