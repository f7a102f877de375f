#pragma once
// SPDX-License-Identifier: Apache-2.0

// Sums over the threads of a warp or a block in one fixed tree: which value meets which follows from the size of the block
// alone, so the bits do too. Every thread gets the same sum.

#include <cuda_runtime.h>

namespace rheo::inline v0::cuda {

inline constexpr int warp_size = 32;
inline constexpr unsigned all_lanes = 0xffffffffU;

struct sum_of {
    template <class T>
    __device__ T operator()(T a, T b) const
    {
        return a + b;
    }
};
struct larger_of {
    template <class T>
    __device__ T operator()(T a, T b) const
    {
        return a < b ? b : a;
    }
};

/// Over the lanes of a warp, all of which call it: a butterfly, whose two operands commute, so that all lanes agree.
template <class Join = sum_of, class T>
__device__ T warp_reduce(T value, Join join = {})
{
    for (int lane_mask = warp_size / 2; lane_mask > 0; lane_mask /= 2) {
        value = join(value, __shfl_xor_sync(all_lanes, value, lane_mask));
    }
    return value;
}

/// Elements of shared memory that block_reduce of `Count` values wants.
template <int Count>
inline constexpr int block_temp_storage = Count * warp_size;

/// Over the threads of one row of a block (threadIdx.x), all of which call it, Count values side by side. A row that is one warp
/// needs no shared memory and no barrier; else all rows of the block come at once, each has block_temp_storage<Count> of `room`, and nothing else uses
/// that until the next barrier. @pre blockDim.x is a multiple of 32
template <int Count, class Join = sum_of, class T>
__device__ void block_reduce(T (&values)[Count], T identity, T* scratch, Join join = {})
{
    for (int i = 0; i < Count; ++i) {
        values[i] = warp_reduce(values[i], join);
    }
    if (blockDim.x == warp_size) {
        return;
    }
    scratch += threadIdx.y * block_temp_storage<Count>;
    auto const lane = static_cast<int>(threadIdx.x % warp_size);
    auto const warp = static_cast<int>(threadIdx.x / warp_size);
    auto const warps = static_cast<int>(blockDim.x / warp_size);
    if (lane == 0) {
        for (int i = 0; i < Count; ++i) {
            scratch[warp * Count + i] = values[i];
        }
    }
    __syncthreads();
    for (int i = 0; i < Count; ++i) {
        values[i] = warp_reduce(lane < warps ? scratch[lane * Count + i] : identity, join);
    }
}

}  // namespace rheo::inline v0::cuda
