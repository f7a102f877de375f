#pragma once
// SPDX-License-Identifier: Apache-2.0

// Reductions over a warp by CUB, whose tree follows from the number of lanes alone, and over a block in two steps of it: so the bits follow from the size
// of the block. Every thread gets the result. cub::BlockReduce wants the size of a block at compile time, where ours follows from the width of a row,
// and gives the result to one thread alone.

#include <cuda_runtime.h>
#include <cub/util_ptx.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cuda/functional>

namespace rheo::inline v0::cuda {

inline constexpr int warp_size = 32;
inline constexpr unsigned all_lanes = 0xffffffffU;

/// Over the lanes of a warp, all of which call it, or over so many of the first; the result is the first lane's.
template <class T, class Op, class... Count>
__device__ T reduce_to_first_lane(T value, Op op, Count... count)
{
    typename cub::WarpReduce<T>::TempStorage temp_storage;  // empty: a whole warp reduces by shuffles
    return cub::WarpReduce<T>{temp_storage}.Reduce(value, op, count...);
}

/// Over the lanes of a warp, all of which call it and get the result.
template <class Op = ::cuda::std::plus<>, class T>
__device__ T warp_reduce(T value, Op op = {})
{
    return cub::ShuffleIndex<warp_size>(reduce_to_first_lane(value, op), 0, all_lanes);
}

/// Elements of shared memory that block_reduce of `Count` values wants.
template <int Count>
inline constexpr int block_temp_storage = Count * warp_size;

/// Over the threads of one row of a block (threadIdx.x), all of which call it, Count values side by side. A row that is one warp
/// needs no shared memory and no barrier; else all rows of the block come at once, each has block_temp_storage<Count> of `temp_storage`, and nothing
/// else uses that until the next barrier. @pre blockDim.x is a multiple of 32
template <int Count, class T, class Op = ::cuda::std::plus<>>
__device__ void block_reduce(T (&values)[Count], T* temp_storage, Op op = {})
{
    auto const lane = static_cast<int>(threadIdx.x % warp_size);
    auto const warps = static_cast<int>(blockDim.x / warp_size);
    for (int i = 0; i < Count; ++i) {
        values[i] = reduce_to_first_lane(values[i], op);
    }
    if (warps > 1) {
        temp_storage += threadIdx.y * block_temp_storage<Count>;
        if (lane == 0) {
            for (int i = 0; i < Count; ++i) {
                temp_storage[threadIdx.x / warp_size * Count + i] = values[i];
            }
        }
        __syncthreads();
        for (int i = 0; i < Count; ++i) {
            values[i] = reduce_to_first_lane(lane < warps ? temp_storage[lane * Count + i] : T{}, op, warps);
        }
    }
    for (int i = 0; i < Count; ++i) {
        values[i] = cub::ShuffleIndex<warp_size>(values[i], 0, all_lanes);
    }
}

}  // namespace rheo::inline v0::cuda
