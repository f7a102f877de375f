// SPDX-License-Identifier: Apache-2.0
#include "kernels/shard_sum/shard_sum.hpp"

#include <cstring>

#include "kernels/detail/tile_ranges.hpp"

namespace rheo::inline v0::host {

using namespace detail;

namespace {

constexpr std::int64_t row_tile = 16;
constexpr std::int64_t most_depth = 5;  // of the stack: 1 + the logarithm of most_shards

/// One row's sum, written to `to`; sums on their way lie in `scratch` [most_depth, width].
void sum_of_row(shard_sum_arguments<> const& a, tree_order const& order, std::int64_t row, float* scratch, float* to)
{
    std::array<float const*, static_cast<std::size_t>(most_depth)> stack{};
    std::size_t depth = 0;
    auto const nodes = static_cast<std::size_t>(a.count);
    for (std::size_t i = 0; i < nodes; ++i) {
        stack[depth++] = a.nodes[i].values + row * a.width;
        for (int merge = 0; merge < order.merges[i]; ++merge) {
            --depth;
            bool const last = i + 1 == nodes && merge + 1 == order.merges[i];
            float* const sum = last ? to : scratch + static_cast<std::int64_t>(depth - 1) * a.width;
            loops().add(a.width, stack[depth - 1], stack[depth], sum);
            stack[depth - 1] = sum;
        }
    }
    if (a.bias != nullptr) {
        loops().add(a.width, stack[0], a.bias, to);
    } else if (stack[0] != to) {
        std::memcpy(to, stack[0], static_cast<std::size_t>(a.width) * sizeof(float));
    }
}

}  // namespace

void shard_sum(tile_pool& pool, shard_sum_arguments<> const& a)
{
    auto const order = order_of(a);
    float* const to = a.output != nullptr ? a.output : a.node;
    pool.run(tiles_in(a.rows, row_tile), [&](std::int64_t t, int worker) {
        float* const scratch = pool.scratch_of<float>(worker, most_depth * a.width, row_slot);
        auto const rows = range_of(t, row_tile, a.rows);
        for (std::int64_t r = rows.begin; r < rows.begin + rows.count; ++r) {
            sum_of_row(a, order, r, scratch, to + r * a.width);
        }
    });
}

}  // namespace rheo::inline v0::host
