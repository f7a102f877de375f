#pragma once
// SPDX-License-Identifier: Apache-2.0

// A CUDA device as a back end: one stream, the device's memory for state and stages, page-locked memory for messages. Nothing is in managed memory: what
// a device has no room for is refused, and does not wander to and fro.

#include <memory>
#include <string>
#include <vector>

#include "runtime/back_end.hpp"

namespace rheo::inline v0::cuda {

/// @param rank_on_node which of the node's devices, counted round @param graphs stages record what they do again and again
/// @param warpgroups attention in bf16 is computed by their tensor cores
/// @throws back_end_error when there is no such device
std::unique_ptr<back_end> make_back_end(dtype_policy policy, int rank_on_node, bool graphs = true, bool warpgroups = false);

/// The names of the node's devices; where there are none, why.
struct found_devices {
    std::vector<std::string> names;
    std::string why_none;
};
found_devices find_devices();

}  // namespace rheo::inline v0::cuda
