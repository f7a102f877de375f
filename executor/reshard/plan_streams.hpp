#pragma once
// SPDX-License-Identifier: Apache-2.0

// What one rank does in a round of a plan: a stream of messages to and from each peer. The messages of a pair follow from the plan alone, so
// both ends cut alike, whatever their arrays look like.

#include <cstddef>
#include <vector>

#include "executor/reshard/local_arrays.hpp"
#include "executor/reshard/message_exchange.hpp"
#include "rheo/reshard/reshard_plan.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0::detail {

/// The rank whose part it is, its arrays, and how the communicator numbers the plan's ranks.
struct rank_arrays {
    rank_id self;
    local_arrays const& held;
    local_arrays const& wanted;
    std::vector<int> const& position_of;  ///< plan's rank -> rank of the communicator
};

struct round_streams {
    std::vector<message_stream> outgoing{};
    std::vector<message_stream> incoming{};
    std::size_t sent = 0;
    std::size_t received = 0;
};

/// @param round its transfers, consecutive in the plan. @pre the arrays have all that the plan asks of them
round_streams streams_of(reshard_plan const& plan, array_view<transfer const> round, rank_arrays const& mine, std::size_t message_bytes);

struct kept_copies {
    std::vector<local_copy> copies{};
    std::size_t bytes = 0;  ///< also of what lies in the same place already
};

kept_copies kept_of(reshard_plan const& plan, rank_arrays const& mine);

/// The length of messages with which no rank needs much memory for its peers in any round. The same on all ranks.
std::size_t message_length(reshard_plan const& plan, std::size_t wished);

}  // namespace rheo::inline v0::detail
