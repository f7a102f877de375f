// SPDX-License-Identifier: Apache-2.0
// In place of all files above where no CUDA compiler was found.
#include "executor/cuda/backend.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0::cuda {

std::unique_ptr<compute_backend> make_backend(dtype_policy, int, device_ways const&)
{
    throw exit_error{exit_code::environment, "run.device is cuda, but this rheo was built without CUDA: no nvcc was found, or RHEO_CUDA=OFF was asked for"};
}

attention_by quickest_attention(dtype_policy, int, std::span<layer_description const>, microbatch_shape, bool) { return attention_by::warps; }

found_cudnn find_cudnn() { return {{}, "CUDA is not compiled in"}; }
std::string compiled_code() { return {}; }
found_devices find_devices() { return {{}, "CUDA is not compiled in"}; }

}  // namespace rheo::inline v0::cuda
