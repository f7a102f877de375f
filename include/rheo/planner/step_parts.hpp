#pragma once
// SPDX-License-Identifier: Apache-2.0

// How the ranks spend the time of a step.

namespace rheo::inline v0 {

/// Fractions of the modelled time of all ranks that have a place. They add up to 1.
struct step_parts {
    double computing = 0;
    double exchanging = 0;  ///< inside layers, in groups
    double waiting = 0;     ///< for other stages and their messages, for the member with the most shards, for the longest pipeline

    friend bool operator==(step_parts const&, step_parts const&) = default;
};

}  // namespace rheo::inline v0
