#pragma once
// SPDX-License-Identifier: Apache-2.0

// How a rank spends the time of a step: each moment is in exactly one part.

#include <array>
#include <string_view>

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

template <class Time = seconds>
struct rank_step_times {
    Time computing{};
    Time bubble{};      ///< waits for what no rank has sent or posted yet, or has nothing left to do
    Time messages{};    ///< waits for a message that is on its way
    Time reductions{};  ///< waits for a sum whose last holder has begun
    Time vote{};
    Time update{};

    friend constexpr bool operator==(rank_step_times, rank_step_times) = default;
};

/// The names of the parts.
inline constexpr std::array<std::string_view, 6> rank_step_part_names{"computing", "bubble", "messages", "reductions", "vote", "update"};

/// The parts, in that order.
template <class Time = seconds>
inline constexpr std::array<Time rank_step_times<Time>::*, 6> rank_step_parts{&rank_step_times<Time>::computing, &rank_step_times<Time>::bubble,
                                                                              &rank_step_times<Time>::messages,  &rank_step_times<Time>::reductions,
                                                                              &rank_step_times<Time>::vote,      &rank_step_times<Time>::update};

/// All parts together.
template <class Time>
constexpr Time total_time(rank_step_times<Time> const& times)
{
    Time sum{};
    for (auto const part : rank_step_parts<Time>) {
        sum += times.*part;
    }
    return sum;
}

}  // namespace rheo::inline v0
