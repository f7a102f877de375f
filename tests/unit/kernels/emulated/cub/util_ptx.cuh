#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the kernels use of cub/util_ptx.cuh, for a C++ compiler.

#include "../cuda_runtime.h"

namespace cub {

template <int LogicalWarpThreads, class T>
T ShuffleIndex(T input, int source_lane, unsigned member_mask)
{
    return __shfl_sync(member_mask, input, source_lane, LogicalWarpThreads);
}

}  // namespace cub
