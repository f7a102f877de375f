#pragma once
// SPDX-License-Identifier: Apache-2.0

// trace.json from the files of all ranks. They are read one after the other, an event at a time: a run of many ranks and steps has more
// of them than a rank has memory, and the rank that merges them may be one that computes.

#include <string>

namespace rheo::inline v0 {

/// Writes `<folder>/trace.json`, whole or not at all: rank by rank, in the order of their starts. Of each rank's file it takes the last 64 MiB; a
/// viewer takes no more either. Memory: a thousand events. @returns a sentence when something is missing, else empty
std::string merge_traces(std::string const& folder);

}  // namespace rheo::inline v0
