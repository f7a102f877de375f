#pragma once
// SPDX-License-Identifier: Apache-2.0

// The campaigns by name. Each runs its cases, prints what they were, and returns false when one of them is wrong.

#include <cstdint>

#include "driver.hpp"

namespace campaign {

/// Jobs without failures: all layouts, schedules and thread counts end with the same bits.
bool same_bits(driver& drive);

/// Ranks that end themselves at named points of a step or of a recovery.
bool phases_hit(driver& drive);

/// All schedules end with the same bits, also with a rank lost at each kind of instruction. @param all not only a selection
bool families(driver& drive, bool all);

/// Ranks that share stages are lost in every phase and exchange, and in a change of the plan.
bool groups(driver& drive);

/// All schedules on grids of slices, with the schedule that is made for them.
bool slices(driver& drive, bool all);

/// The same with clocks that follow the plan, a rank that is slow and one that is lost.
bool clocks(driver& drive, bool all);

/// Ranks that are killed from outside. @param seed of the moments and the victims
bool random_kills(driver& drive, std::uint64_t seed);

/// The last copy of a layer dies: the job says so and ends.
bool no_replica(driver& drive);

/// One job, one change of its members after another: ranks are killed or drained, ranks that wait take their places.
bool members_change(driver& drive, std::uint64_t seed, int ranks, int changes);

}  // namespace campaign
