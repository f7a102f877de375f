#pragma once
// SPDX-License-Identifier: Apache-2.0

// A CUDA device as a backend: one stream, the device's memory for state and stages, page-locked memory for messages. Nothing is in managed memory: what
// a device has no room for is refused, and does not wander to and fro.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/device/backend.hpp"

namespace rheo::inline v0::cuda {

/// What computes attention in bf16: a warp's tensor cores, a warpgroup's, or cuDNN.
enum class attention_by : std::uint8_t { warps, warpgroups, cudnn };

struct device_ways {
    bool graphs = true;  ///< stages record what they do again and again
    attention_by attention = attention_by::warps;
    bool deterministic = true;  ///< cuDNN adds up gradients in one order
};

/// The quickest that computes the attentions of these layers on the device of the rank: cuDNN where it is there, has plans for them and works in at most a sixteenth of
/// the device's memory; else a warpgroup, where the device has it. @param deterministic cuDNN's order of sums
attention_by quickest_attention(dtype_policy policy, int rank_on_node, std::span<layer_description const> layers, microbatch_shape shape, bool deterministic);

/// @param rank_on_node which of the node's devices, counted round
/// @throws exit_error when there is no such device, or it cannot be had in these ways
std::unique_ptr<compute_backend> make_backend(dtype_policy policy, int rank_on_node, device_ways const& ways = {});

/// The names of the node's devices; where there are none, why.
struct found_devices {
    std::vector<std::string> names;
    std::string error_if_none;
};
found_devices find_devices();

/// For which devices the kernels were compiled, in words; empty: for none.
std::string compiled_code();

/// The version of cuDNN, which is opened for that; where there is none, why.
struct found_cudnn {
    std::string version;
    std::string error_if_none;
};
found_cudnn find_cudnn();

}  // namespace rheo::inline v0::cuda
