#pragma once
// SPDX-License-Identifier: Apache-2.0

// A Chakra execution trace with times as what the rank's device did, in the form in which profiles are analyzed: computations, communication and memory
// on a stream each, collectives by operation and group.

#include <cstdint>
#include <string>

#include "rheo/analyze/device/rank_trace.hpp"

namespace rheo::inline v0 {

struct chakra_profile {
    rank_trace trace;
    std::int64_t left_out = 0;  ///< nodes of the device without a time
};

/// The nodes of the device with their times: rheo's exact ones where they are there, else microseconds. Nodes of the host (is_cpu_op) are none.
/// @throws exit_error (bad data) when the file is no trace
chakra_profile read_chakra_profile(std::string const& path, rank_id rank);

}  // namespace rheo::inline v0
