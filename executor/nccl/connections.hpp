#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which ranks a plan connects: what a rank sends and receives, and with whom it sums. Each is a communicator of its own, so that what waits in one holds
// nothing else back: on a link both ends come to messages in one order, because schedules are proved free of deadlock where stages meet for every message
// (deadlock_free<rendezvous>), which is NCCL's model. The members of a group may come to its reductions in different orders, so these have one, too: a row
// waits for none before it has posted all.

#include <algorithm>
#include <compare>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/mpi/messenger.hpp"
#include "rheo/schedule/core/instruction.hpp"

namespace rheo::inline v0::nccl {

inline constexpr int most_blocks_of_nccl = 32;  ///< of one kernel, whatever the device

/// A link has two members, who sends and who receives. A group has the ranks that run a stage together, or the holders of reductions.
struct connection {
    mpi::channel kind{};  ///< of a link; of a group shards or reduce_sums
    std::vector<rank_id> members{};
    std::vector<reduction_id> sums{};  ///< of holders, in the order in which all members sum them
    bool exchanges = false;            ///< its members give each other messages

    bool is_group() const { return kind == mpi::channel::shards || kind == mpi::channel::reduce_sums; }
    int position_of(rank_id rank) const { return static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin()); }
    friend auto operator<=>(connection const&, connection const&) = default;
};

inline connection link(rank_id from, rank_id to, mpi::channel kind) { return {kind, {from, to}}; }
inline connection members_of_stage(std::vector<rank_id> group) { return {mpi::channel::shards, std::move(group), {}, true}; }
/// @param holders ascending  @param exchanges some of them get parameters from others
inline connection holders_of(std::vector<reduction_id> sums, std::vector<rank_id> holders, bool exchanges)
{
    return {mpi::channel::reduce_sums, std::move(holders), std::move(sums), exchanges};
}

/// Blocks that the kernels of a connection may have, so that those of all connections run at once beside each other: one that waited for room would keep
/// back ranks that the others wait for.
struct shares_of_device {
    int link = 0;
    int group = 0;  ///< most_blocks_of_nccl at most
};
/// Nothing if there is no room even for one each.
std::optional<shares_of_device> shares_of(int links, int groups, int multiprocessors);

/// For people: "ranks 0 and 1", "ranks 0, 2 and 5".
std::string text_of(connection const& one);

}  // namespace rheo::inline v0::nccl
