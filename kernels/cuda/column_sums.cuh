#pragma once
// SPDX-License-Identifier: Apache-2.0

// Sums over the rows of a matrix, one for each column, as the gradients of weights and biases are. A block adds 256 rows of 8 chunks
// of columns; the block that comes last to its columns adds what all of them found, in the order of the rows. So the order
// of every sum follows from the shape alone, whichever block is the last.

#include <cstdint>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/vector.cuh"
#include "kernels/cuda/workspace.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::cuda {

inline constexpr int column_chunks = 8;  // 128 bytes of a row
inline constexpr int column_lanes = 32;  // rows that are read side by side
inline constexpr int column_rows = 256;  // rows of a block
inline constexpr int column_threads = column_chunks * column_lanes;
inline constexpr int columns_in_flight = 4;

template <class T>
inline constexpr int block_columns{column_chunks * chunk_size<T>};

/// Bytes of workspace for `values` sums per column.
constexpr std::int64_t column_workspace_bytes(std::int64_t rows, std::int64_t width, int values)
{
    std::int64_t const groups = (rows + column_rows - 1) / column_rows;
    return workspace::counter_bytes + (groups > 1 ? groups * values * width * 4 : 0);
}

/// Which of them a block has: columns of `tile`, rows of `group` of so many.
struct column_place {
    unsigned tile;
    unsigned group;
    unsigned groups;
};

/// @pre the workspace holds what column_workspace_bytes says
template <class T>
launch_shape shape_of_columns(std::int64_t rows, std::int64_t width, int values, workspace scratch)
{
    auto const tiles = blocks_for(width, block_columns<T>);
    expects(tiles <= workspace::counters, "sums over rows take at most 524288 columns");
    expects(rows <= column_rows || scratch.bytes >= column_workspace_bytes(rows, width, values), "the workspace is too small for the sums over these rows");
    return {.grid = {tiles, blocks_for(rows, column_rows)},
            .block = column_threads,
            .shared_bytes = sizeof(float) * static_cast<std::size_t>(column_threads / warp_size * values * block_columns<T>)};
}

/// The place of a block of such a launch.
__device__ inline column_place place_in_grid() { return {.tile = blockIdx.x, .group = blockIdx.y, .groups = gridDim.y}; }

/// What a thread adds up of its chunk of columns.
template <int Values, class T>
using column_chunk_sums = float[Values][chunk_size<T>];

/// read(row, chunk) gives what a thread needs of a row, zeros beyond the last; add(what, sums) adds it to column_chunk_sums;
/// take(value, column, sum) is called once for each, and then done() by all threads of that block. A block may have more threads, which have
/// nothing to do but come along. @pre at least column_threads, in whole warps
template <int Values, class T, class Read, class Add, class Take, class Done>
__device__ void column_sums(std::int64_t width, workspace scratch, column_place place, Read read, Add add, Take take, Done done)
{
    constexpr int size = chunk_size<T>;
    constexpr int columns = block_columns<T>;
    constexpr int sums_of_block = Values * columns;
    static_assert(column_threads % sums_of_block == 0, "every thread adds for one column");
    auto const thread = static_cast<int>(threadIdx.x + threadIdx.y * blockDim.x);
    bool const reads = thread < column_threads;
    auto const chunk = static_cast<std::int64_t>(place.tile) * column_chunks + thread % column_chunks;
    auto const first = static_cast<std::int64_t>(place.group) * column_rows + thread / column_chunks;

    column_chunk_sums<Values, T> sums = {};
    for (int i = 0; reads && i < column_rows / column_lanes; i += columns_in_flight) {
        decltype(read(first, chunk)) some[columns_in_flight];
        for (int k = 0; k < columns_in_flight; ++k) {
            some[k] = read(first + (i + k) * column_lanes, chunk);
        }
        for (int k = 0; k < columns_in_flight; ++k) {
            add(some[k], sums);
        }
    }

    // the warp's four rows, then the block's eight warps
    auto* const shared = shared_memory<float>();  // [warp, value, column]
    for (int v = 0; v < Values; ++v) {
        for (int e = 0; e < size; ++e) {
            float sum = sums[v][e];
            // by hand: lanes of one column are column_chunks apart, those of a logical warp of CUB side by side
            for (int lane_mask = column_chunks; lane_mask < warp_size; lane_mask *= 2) {
                sum += __shfl_xor_sync(all_lanes, sum, lane_mask);
            }
            if (reads && thread % warp_size < column_chunks) {
                shared[(thread / warp_size * Values + v) * columns + thread % column_chunks * size + e] = sum;
            }
        }
    }
    __syncthreads();
    int const value = thread % sums_of_block / columns;
    std::int64_t const column = static_cast<std::int64_t>(place.tile) * columns + thread % columns;
    bool const adds = thread < sums_of_block && column < width;
    float total = 0;
    for (int warp = 0; adds && warp < column_threads / warp_size; ++warp) {
        total += shared[warp * sums_of_block + thread];
    }
    if (place.groups == 1) {
        if (adds) {
            take(value, column, total);
        }
        done();
        return;
    }

    auto* const counters = static_cast<unsigned*>(scratch.memory);
    auto* const partial = reinterpret_cast<float*>(counters + workspace::counters);  // [group, value, column]
    if (adds) {
        partial[(place.group * Values + value) * width + column] = total;
    }
    __threadfence();
    __syncthreads();
    bool last = false;
    if (thread == 0) {
        last = atomicAdd(counters + place.tile, 1U) == place.groups - 1;
    }
    if (__syncthreads_or(last) == 0) {
        return;
    }
    __threadfence();
    constexpr int lanes = column_threads / sums_of_block;
    total = 0;
    for (unsigned group = static_cast<unsigned>(thread / sums_of_block); reads && group < place.groups && column < width; group += lanes) {
        total += __ldcg(partial + (group * Values + value) * width + column);
    }
    if (reads) {
        shared[thread] = total;
    }
    __syncthreads();
    for (int lane = 1; adds && lane < lanes; ++lane) {
        total += shared[lane * sums_of_block + thread];
    }
    if (adds) {
        take(value, column, total);
    }
    if (thread == 0) {
        counters[place.tile] = 0;
    }
    done();
}

}  // namespace rheo::inline v0::cuda
