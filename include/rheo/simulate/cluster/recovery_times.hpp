#pragma once
// SPDX-License-Identifier: Apache-2.0

// How long a recovery takes, phase by phase, as records of a run name them. What begins again behind it is a part of the step.

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What each phase of a recovery takes; all survivors go through a phase together.
struct recovery_times {
    seconds detect;  ///< from the loss until survivors hear of it
    seconds revoke;
    seconds decide;  ///< the vote with 0
    seconds shrink;
    seconds link;
    seconds exchange;
    seconds plan;
    seconds copy;
    seconds merge;

    friend constexpr bool operator==(recovery_times, recovery_times) = default;
};

using time_of_phase = seconds recovery_times::*;

struct recovery_phase {
    char const* name;
    time_of_phase time;
};

inline constexpr recovery_phase recovery_phase_list[] = {
    {"detect", &recovery_times::detect}, {"revoke", &recovery_times::revoke}, {"decide", &recovery_times::decide},
    {"shrink", &recovery_times::shrink}, {"link", &recovery_times::link},     {"exchange", &recovery_times::exchange},
    {"plan", &recovery_times::plan},     {"copy", &recovery_times::copy},     {"merge", &recovery_times::merge},
};

constexpr seconds total_time(recovery_times const& times)
{
    seconds sum{};
    for (auto const& phase : recovery_phase_list) {
        sum += times.*phase.time;
    }
    return sum;
}

}  // namespace rheo::inline v0
