#pragma once
// SPDX-License-Identifier: Apache-2.0

// The stage of a device. Its own file, because it is much to compile.

#include <memory>

#include "cuda/device_queue.hpp"
#include "runtime/stage.hpp"

namespace rheo::inline v0::cuda {

/// Policy is fp32 or bf16. See the constructor of stage.
template <dtype_policy Policy>
std::unique_ptr<stage> make_device_stage(std::span<layer_description const> layers, layer_id first, microbatch_shape shape, int microbatches,
                                         resident_state& state, back_end& on, device_queue& queue);

}  // namespace rheo::inline v0::cuda
