#pragma once
// SPDX-License-Identifier: Apache-2.0

// Why traces hang: from a rank that waits to the one that it waits for, until one comes again. These ranks wait for each other.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rheo/trace/chakra/trace_set.hpp"

namespace rheo::inline v0 {

/// What a rank that hangs waits for.
struct chakra_wait {
    std::uint32_t step = UINT32_MAX;  ///< in its trace; UINT32_MAX: not known
    std::size_t rank = 0;             ///< that has not done its part
};

/// @param waits of a rank: its chakra_wait  @returns "the traces hang: COMM_RECV node 7 of rank 2 waits for rank 0, ..."
template <class Waits>
std::string explain_hang(chakra_trace_set const& traces, std::size_t rank, Waits const& waits)
{
    std::vector<bool> seen(traces.ranks.size());
    for (; !seen[rank]; rank = waits(rank).rank) {
        seen[rank] = true;
    }
    std::string text = "the traces hang:";
    auto const first = rank;
    int shown = 0;
    do {
        auto const wait = waits(rank);
        text += std::string{shown == 0 ? " " : ", "} +
                (wait.step == UINT32_MAX ? "rank " + std::to_string(rank) : label_of(traces.ranks[rank].steps[wait.step], rank)) + " waits for rank " +
                std::to_string(wait.rank);
        rank = wait.rank;
    } while (rank != first && ++shown < 8);
    return text + (rank == first ? "; these ranks wait for each other" : ", and so on");
}

}  // namespace rheo::inline v0
