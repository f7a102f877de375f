#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where the time of a step goes: what binds a plan.

namespace rheo::inline v0 {

/// Where the time of the ranks that have a place goes in a step, as modelled. Parts add up to 1.
struct step_parts {
    double computing = 0;
    double exchanging = 0;  ///< inside layers, in groups
    double waiting = 0;     ///< for other stages, for messages between them, for a member with more shards, and for a longer pipeline

    friend bool operator==(step_parts const&, step_parts const&) = default;
};

}  // namespace rheo::inline v0
