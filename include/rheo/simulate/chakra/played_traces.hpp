#pragma once
// SPDX-License-Identifier: Apache-2.0

// What playing execution traces gives: when each rank has ended, and what its time was.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rheo::inline v0 {

/// The time from 0 to the end of the whole is `busy`, `exposed`, and else idle.
template <class Time>
struct played_rank {
    Time end{};      ///< of its last step
    Time busy{};     ///< its device computes
    Time exposed{};  ///< its device does not, and a message is on its way to or from it, or a collective is under way whose members have all come

    friend constexpr bool operator==(played_rank, played_rank) = default;
};

/// A step on the time line of its rank.
template <class Time>
struct played_span {
    std::uint32_t rank;
    std::uint32_t step;  ///< in the trace of the rank
    Time begin;
    Time end;

    friend constexpr bool operator==(played_span, played_span) = default;
};

template <class Time>
struct played_traces {
    Time end{};            ///< of the last rank
    int played_ranks = 0;  ///< the others are like one of these
    std::vector<played_rank<Time>> ranks;
    std::vector<played_span<Time>> spans;  ///< by rank, then by end; empty unless they were asked for

    friend bool operator==(played_traces const&, played_traces const&) = default;
};

template <class Time>
Time idle_time(played_traces<Time> const& played, std::size_t rank)
{
    return played.end - played.ranks[rank].busy - played.ranks[rank].exposed;
}

}  // namespace rheo::inline v0
