// SPDX-License-Identifier: Apache-2.0
#include "executor/cuda/stage.hpp"

#include "executor/cuda/stage_kernels.hpp"
#include "executor/stage/stage_on_pass.hpp"

namespace rheo::inline v0::cuda {

template <dtype_policy Policy>
std::unique_ptr<stage> make_device_stage(std::span<layer_description const> layers, layer_id first, microbatch_shape shape, int microbatches,
                                         resident_state& state, compute_backend& backend, device_queue& queue,
                                         std::span<recompute_level const> recompute_levels, shard_group const& group, bool records)
{
    return std::make_unique<stage_on<stage_kernels<Policy>>>(layers, first, shape, microbatches, state, backend,
                                                             stage_kernels<Policy>{queue, records ? std::make_shared<recordings>(queue) : nullptr},
                                                             recompute_levels, group);
}

template std::unique_ptr<stage> make_device_stage<fp32>(std::span<layer_description const>, layer_id, microbatch_shape, int, resident_state&, compute_backend&,
                                                        device_queue&, std::span<recompute_level const>, shard_group const&, bool);
template std::unique_ptr<stage> make_device_stage<bf16>(std::span<layer_description const>, layer_id, microbatch_shape, int, resident_state&, compute_backend&,
                                                        device_queue&, std::span<recompute_level const>, shard_group const&, bool);
template std::unique_ptr<stage> make_device_stage<fp32_i32>(std::span<layer_description const>, layer_id, microbatch_shape, int, resident_state&,
                                                            compute_backend&, device_queue&, std::span<recompute_level const>, shard_group const&, bool);
template std::unique_ptr<stage> make_device_stage<bf16_i32>(std::span<layer_description const>, layer_id, microbatch_shape, int, resident_state&,
                                                            compute_backend&, device_queue&, std::span<recompute_level const>, shard_group const&, bool);

}  // namespace rheo::inline v0::cuda
