#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which ranks a plan connects: what a rank sends and receives, and with whom it sums. Each is a communicator of its own, so that what waits in one holds
// nothing else back: on a link both ends come to messages in one order, because schedules are proved free of deadlock where stages meet for every message
// (deadlock_free<rendezvous>), which is NCCL's model. The members of a group may come to its reductions in different orders, so these have one, too: a row
// waits for none before it has posted all.

#include <algorithm>
#include <compare>
#include <string>
#include <utility>
#include <vector>

#include "executor/mpi/messenger.hpp"
#include "rheo/schedule/core/instruction.hpp"

namespace rheo::inline v0::nccl {

/// One of the two kinds. A link has two members, who sends and who receives; a group has the holders of reductions, ascending.
struct connection {
    mpi::channel kind{};  ///< of a link; of a group reduce_sums
    std::vector<rank_id> members{};
    std::vector<reduction_id> sums{};  ///< of a group, in the order in which all members sum them

    bool is_group() const { return kind == mpi::channel::reduce_sums; }
    int position_of(rank_id rank) const { return static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin()); }
    friend auto operator<=>(connection const&, connection const&) = default;
};

inline connection link(rank_id from, rank_id to, mpi::channel kind) { return {kind, {from, to}, {}}; }
inline connection group(std::vector<rank_id> holders, std::vector<reduction_id> sums)
{
    return {mpi::channel::reduce_sums, std::move(holders), std::move(sums)};
}

/// For people: "ranks 0 and 1", "ranks 0, 2 and 5".
std::string text_of(connection const& one);

}  // namespace rheo::inline v0::nccl
