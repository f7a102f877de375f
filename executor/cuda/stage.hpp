#pragma once
// SPDX-License-Identifier: Apache-2.0

// The stage of a device. Its own file, because it is much to compile.

#include <memory>

#include "executor/cuda/queue.hpp"
#include "executor/stage/stage.hpp"

namespace rheo::inline v0::cuda {

/// Policy is fp32, bf16, fp32_i32 or bf16_i32. See the constructor of stage. @param records what it does again and again is recorded
template <dtype_policy Policy>
std::unique_ptr<stage> make_device_stage(std::span<layer_description const> layers, layer_id first, microbatch_shape shape, int microbatches,
                                         resident_state& state, compute_backend& backend, device_queue& queue,
                                         std::span<recompute_level const> recompute_levels, shard_group const& group, bool records);

}  // namespace rheo::inline v0::cuda
