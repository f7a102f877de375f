#pragma once
// SPDX-License-Identifier: Apache-2.0

// How many messages a transport must hold so that a lowered program ends. More places never hurt (what a
// rank may do with k places it may do with k + 1), so the least depth is found by halving.

#include <optional>

#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/transport.hpp"

namespace rheo::inline v0 {

/// The least depth of the queues under which the program ends, 0 when it needs none (rendezvous); nothing when messages arrive
/// in another order than they are received in, which no depth heals. Cost: the logarithm of the messages x the check.
template <class OnlyWhenCalled = void>
constexpr std::optional<int> least_fifo_depth(program const& p, bool by_direction = false)
{
    if (deadlock_free<rendezvous>(p)) {
        return 0;
    }
    int sends = 1;
    for (auto const& row : p.rows) {
        for (auto const& i : row) {
            sends += is_send(i.kind) ? 1 : 0;
        }
    }
    auto const ends = [&](int depth) { return deadlock_free(p, fifo{.depth = depth, .by_direction = by_direction}).ok; };
    if (!ends(sends)) {
        return std::nullopt;
    }
    int below = 0;
    while (sends - below > 1) {
        auto const middle = below + (sends - below) / 2;
        (ends(middle) ? sends : below) = middle;
    }
    return sends;
}

}  // namespace rheo::inline v0
