// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/error.hpp"

#include <cuda_runtime.h>

namespace rheo::inline v0::cuda {

void check(int code, char const* call, std::source_location place)
{
    if (code == cudaSuccess) {
        return;
    }
    auto const name = static_cast<cudaError_t>(code);
    throw error{code, std::string{call} + " failed: " + cudaGetErrorString(name) + " (" + cudaGetErrorName(name) + ", at " + place.file_name() + ":" +
                          std::to_string(place.line()) + ")"};
}

}  // namespace rheo::inline v0::cuda
