#pragma once
// SPDX-License-Identifier: Apache-2.0

// Communicators that outlive a plan. Where a loss, or a change of the plan, leaves a connection with its members, and nothing is under way there, it need not come
// up again: all members have it, healthy, with as many operations. The numbers tell what a look at one side cannot: NCCL may be done with a send before its
// receive has begun.

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/mpi/messenger.hpp"
#include "executor/nccl/communicator.hpp"
#include "executor/nccl/connections.hpp"

namespace rheo::inline v0::nccl {

/// One in which nothing is under way on this rank.
struct quiet_communicator {
    connection about;
    unique_id id{};
    std::uint64_t operations = 0;  ///< put into streams since it came up
    int most_blocks = 0;           ///< of its kernels
    communicator members;
};

/// What a connection of a plan begins with.
struct connection_start {
    unique_id id{};
    std::optional<communicator> kept{};  ///< up; else it comes up by that id
    std::uint64_t operations = 0;
    int most_blocks = 0;  ///< of its kernels, the same on all members
};

/// The members of each connection learn its name, and how many blocks its kernels may have, from the first of them, who knows by then what all of them have kept
/// and have room for. Waits for messages. @param all those of this rank, in the order of all ranks  @param room of this rank, for blocks of each of them
/// @throws mpi::peer_lost, error
std::vector<connection_start> agree_on_starts(library const& calls, mpi::messenger& messages, std::vector<connection> const& all, std::vector<int> const& room,
                                              std::vector<quiet_communicator> kept);

}  // namespace rheo::inline v0::nccl
