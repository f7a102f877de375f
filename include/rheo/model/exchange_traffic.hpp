#pragma once
// SPDX-License-Identifier: Apache-2.0

// The bytes that the ranks of a group exchange inside a layer. Forward each gathers the rows of the others, and of its own rows the nodes of each sum;
// backward it is the other way round.

#include "rheo/model/footprint.hpp"
#include "rheo/model/layer.hpp"
#include "rheo/model/layer_shards.hpp"
#include "rheo/tensor/shard_grid.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What the member that is meant receives for one item, forward and backward, when nothing is recomputed. Rows of the token table count as if others had
/// all of its own: how many they have depends on the tokens.
template <class OnlyWhenCalled = void>
constexpr bytes received_bytes(layer_description const& layer, microbatch_shape shape, dtype_policy const& policy, shard_group const& group)
{
    if (group.is_alone()) {
        return {};
    }
    auto const all = shards_of(layer, group);
    auto const run = group.run(layer.shards);
    auto const own = rows_of(run, rows(shape), layer.shards).count();
    std::int64_t nodes = 0;
    for (std::size_t m = 0; m < group.members.size(); ++m) {
        nodes += static_cast<int>(m) == group.self ? 0 : static_cast<std::int64_t>(nodes_within(layer.shards, group.members[m]).size());
    }
    bytes sum;
    for (auto const& o : all.first().ops) {
        auto const gathered = bytes{(rows(shape) - own) * o.own.out_width * size_of(policy.storage)};
        auto const summed = bytes{nodes * own * o.own.out_width * size_of(policy.compute)};
        switch (o.kind) {
        case shard_op_kind::operation:
            if (o.own.kind == op_kind::cross_entropy || o.own.kind == op_kind::loss_gradient) {
                sum += bytes{(layer.shards - run.count()) * rows(shape) * row_statistics_bytes};
            }
            break;
        case shard_op_kind::gather_rows:
        case shard_op_kind::sum_shards: sum += gathered + summed; break;
        case shard_op_kind::collect_rows: sum += bytes{own * o.own.out_width * size_of(policy.storage)} + gathered; break;
        }
    }
    return sum;
}

/// Number of exchanges in a forward; a backward has as many.
template <class OnlyWhenCalled = void>
constexpr int exchange_count(layer_description const& layer, shard_group const& group)
{
    int count = 0;
    if (!group.is_alone()) {
        auto const all = shards_of(layer, group);
        for (auto const& o : all.first().ops) {
            count += o.kind != shard_op_kind::operation || o.own.kind == op_kind::cross_entropy ? 1 : 0;
        }
    }
    return count;
}

/// Of all layers of a stage.
template <class OnlyWhenCalled = void>
constexpr bytes received_bytes(array_view<layer_description const> stage, microbatch_shape shape, dtype_policy const& policy, shard_group const& group)
{
    bytes sum;
    for (auto const& layer : stage) {
        sum += received_bytes(layer, shape, policy, group);
    }
    return sum;
}

}  // namespace rheo::inline v0
