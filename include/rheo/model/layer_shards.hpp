#pragma once
// SPDX-License-Identifier: Apache-2.0

// The shards of a layer that one rank computes, and how their slots share memory. Strips of one matrix lie in one matrix, so a gather among the shards
// of one rank moves nothing: all rows are there when each strip is. Rows that shards look up in their parts of the token table go to their places in the
// strips at once. A partial product and the statistics of a soft-max live only until the exchange behind them.

#include <cstddef>
#include <vector>

#include "rheo/model/layer.hpp"
#include "rheo/model/shard_layer.hpp"
#include "rheo/model/sharding.hpp"

namespace rheo::inline v0 {

struct layer_shards {
    std::vector<shard_layer> shards{};  ///< their lists have the same operations in the same order
    fixed_vector<int, 24> place{};      ///< slot -> the slot in whose memory it lies; itself, mostly

    friend constexpr bool operator==(layer_shards const&, layer_shards const&) = default;

    constexpr int grid() const { return first().grid; }
    constexpr shard_layer const& first() const { return shards.front(); }
    constexpr std::size_t slots() const { return first().slot_widths.size(); }
    constexpr std::size_t ops() const { return first().ops.size(); }
    constexpr slot_form form(int slot) const { return first().forms[static_cast<std::size_t>(slot)]; }
    constexpr int place_of(int slot) const { return place[static_cast<std::size_t>(slot)]; }
    /// Whether the slot has memory of its own from the forward to the backward.
    constexpr bool is_kept(int slot) const { return place_of(slot) == slot; }
    /// Whether each shard has a matrix of its own there, of its own columns.
    constexpr bool is_cut(int slot) const { return form(slot) == slot_form::cut; }
    constexpr std::int64_t width(std::size_t shard, int slot) const { return shards[shard].slot_widths[static_cast<std::size_t>(slot)]; }
};

/// All shards of the layer's grid, or those of a group's member.
template <class OnlyWhenCalled = void>
constexpr layer_shards shards_of(layer_description const& layer, shard_group const& group = {})
{
    layer_shards all;
    auto const run = group.run(layer.shards);
    for (auto j = run.begin; j < run.end; ++j) {
        all.shards.push_back(sharded(layer, layer.shards, static_cast<int>(j)));
    }
    for (std::size_t s = 0; s < all.slots(); ++s) {
        all.place.push_back(static_cast<int>(s));
    }
    for (auto const& o : all.first().ops) {
        auto const x = o.own.x[0];
        auto const z = o.own.z[0];
        switch (o.kind) {
        case shard_op_kind::operation: break;
        case shard_op_kind::gather_rows: all.place[static_cast<std::size_t>(z)] = all.place_of(x); break;
        case shard_op_kind::sum_shards:
        case shard_op_kind::collect_rows: all.place[static_cast<std::size_t>(x)] = all.place_of(z); break;
        }
    }
    return all;
}

}  // namespace rheo::inline v0
