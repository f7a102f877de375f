#pragma once
// SPDX-License-Identifier: Apache-2.0

// Functions that a multiprocessor has an instruction for (PTX ISA, "ex2" and "rcp"): not the last bit, but one instruction in place of 8 and more of
// `expf` or a division, which would bound kernels that are to wait for memory alone. The same bits every time on one kind of device.
// The emulation computes the exact value, rounded.

#include <cmath>
#include <limits>

#include <cuda_runtime.h>

namespace rheo::inline v0::cuda {

/// 2^x, or zero where that is below the normal numbers. Its relative error is at most 2^-22.
__device__ inline float power_of_two(float x)
{
    float result;
#ifdef __CUDA_EMULATED__
    result = std::exp2(x);
    result = result < std::numeric_limits<float>::min() ? 0.0F : result;
#else
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
#endif
    return result;
}

/// 1/x, or zero where that is below the normal numbers. It is off by one unit in the last place at most.
__device__ inline float reciprocal(float x)
{
    float result;
#ifdef __CUDA_EMULATED__
    result = 1.0F / x;
    result = std::fabs(result) < std::numeric_limits<float>::min() ? 0.0F : result;
#else
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
#endif
    return result;
}

}  // namespace rheo::inline v0::cuda
