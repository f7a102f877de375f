#pragma once
// SPDX-License-Identifier: Apache-2.0

// Many tensors in one launch: each has its blocks, one after the other, and a block finds whose it is.

#include <cstdint>

#include <cuda_runtime.h>

namespace rheo::inline v0::cuda {

/// The n with first_block[n] <= block < first_block[n + 1], by bisection. @pre there is one
__device__ inline std::int64_t piece_of(std::int64_t block, std::int64_t const* first_block, std::int64_t count)
{
    std::int64_t low = 0;
    for (std::int64_t high = count; high - low > 1;) {
        std::int64_t const middle = (low + high) / 2;
        (first_block[middle] <= block ? low : high) = middle;
    }
    return low;
}

}  // namespace rheo::inline v0::cuda
