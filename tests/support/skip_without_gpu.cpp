// SPDX-License-Identifier: Apache-2.0
// Linked into tests that want a GPU: without one they say so before the first test and end with 77, by which ctest knows a test that was skipped.
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

namespace {

struct gpu_is_there {
    gpu_is_there()
    {
        int devices = 0;
        cudaError_t const code = cudaGetDeviceCount(&devices);
        if (code != cudaSuccess || devices == 0) {
            std::printf("skipped: this test needs a GPU (%s)\n", code != cudaSuccess ? cudaGetErrorString(code) : "the driver knows none");
            std::exit(77);
        }
    }
} const gpu;

}  // namespace
