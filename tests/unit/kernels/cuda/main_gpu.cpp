// SPDX-License-Identifier: Apache-2.0
// The tests' main program where a GPU is wanted: without one it says so and ends with 77, by which ctest knows a test that was skipped.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <cstdio>

#include <cuda_runtime.h>

int main(int argc, char** argv)
{
    int devices = 0;
    cudaError_t const code = cudaGetDeviceCount(&devices);
    if (code != cudaSuccess || devices == 0) {
        std::printf("skipped: this test needs a GPU (%s)\n", code != cudaSuccess ? cudaGetErrorString(code) : "the driver knows none");
        return 77;
    }
    return Catch::Session().run(argc, argv);
}
