#pragma once
// SPDX-License-Identifier: Apache-2.0

// What one rank does in a round of a plan: a stream of messages to and from each peer. The messages of a pair follow from the plan alone, so
// both ends cut alike, whatever their arrays look like.

#include <cstddef>
#include <cstdint>
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

/// The order of a box's elements in a message: the last dimension or the first one changes fastest.
enum class element_order : std::uint8_t { row_major, column_major };

/// Of messages, in bytes.
struct message_lengths {
    std::size_t most;                                  ///< longer boxes are cut
    std::size_t alone = static_cast<std::size_t>(-1);  ///< boxes from this length on join no others, so that they need no buffer
};

struct round_streams {
    std::vector<message_stream> outgoing{};
    std::vector<message_stream> incoming{};
    std::size_t sent = 0;
    std::size_t received = 0;
};

/// @param round its transfers, consecutive in the plan. @param order the same on all ranks. @pre the arrays have all that the plan asks of them
round_streams streams_of(reshard_plan const& plan, array_view<transfer const> round, rank_arrays const& mine, message_lengths lengths,
                         element_order order = element_order::row_major);

struct kept_copies {
    std::vector<local_copy> copies{};
    std::size_t bytes = 0;  ///< also of what lies in the same place already
};

/// Without the addends of sums.
kept_copies kept_of(reshard_plan const& plan, rank_arrays const& mine);

/// Addends that this rank holds of sums that it wants, and what they are of.
struct own_addends {
    std::vector<local_copy> copies{};
    std::vector<array_part> parts{};  ///< of each copy, one role
};

/// @return the bytes of the addends
std::size_t append_addend(own_addends& all, reshard_plan const& plan, rank_arrays const& mine, array_part const& part, tensor_role role);

/// Fills a box of the wanted arrays with an element of so many bytes, the lowest first.
void fill_with(std::uint64_t first, std::size_t size, nd_box const& all, tensor_id tensor, tensor_role role, local_arrays const& wanted,
               row_copier const& copy_rows);

/// The length of messages with which no rank needs much memory for its peers in any round. The same on all ranks.
std::size_t message_length(reshard_plan const& plan, std::size_t wished);

}  // namespace rheo::inline v0::detail
