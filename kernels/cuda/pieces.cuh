#pragma once
// SPDX-License-Identifier: Apache-2.0

// Many tensors in one launch: each has its blocks, one after the other, and a block finds whose it is.

#include <cstdint>

#include <cuda_runtime.h>
#include <cub/thread/thread_search.cuh>

namespace rheo::inline v0::cuda {

/// The n with first_block[n] <= block < first_block[n + 1]. @pre there is one
__device__ inline std::int64_t piece_of(std::int64_t block, std::int64_t const* first_block, std::int64_t count)
{
    return cub::UpperBound(first_block, count, block) - 1;
}

}  // namespace rheo::inline v0::cuda
