#pragma once
// SPDX-License-Identifier: Apache-2.0

// Rows that are read once and kept in registers: up to four chunks of 16 bytes in each thread, as many threads as that takes. Rows
// of up to 128 chunks have a warp each, four of them in a block, and need no barrier. What a thread holds follows from the row's width alone.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/vector.cuh"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::cuda {

inline constexpr int kept_chunks = 4;
inline constexpr int most_row_threads = 1024;

/// The launch of one thread row per row, with room for block_join of `values`. @pre a row fits the registers of a block
template <class T>
launch_shape shape_of_rows(std::int64_t rows, std::int64_t width, int values)
{
    auto const wanted = (chunks_in<T>(width) + kept_chunks - 1) / kept_chunks;
    expects(wanted <= most_row_threads, "a row that a kernel keeps in registers has at most 16384 floats or 32768 bfloat16");
    auto const threads = static_cast<unsigned>(std::max<std::int64_t>(1, (wanted + warp_size - 1) / warp_size) * warp_size);
    unsigned const each = threads == warp_size ? 4 : 1;
    return {.grid = blocks_for(rows, each), .block = {threads, each}, .shared_bytes = threads == warp_size ? 0 : sizeof(float) * static_cast<std::size_t>(values * warp_size)};
}

/// The row of the running thread; rows beyond the last one are empty, so that their threads take part in everything.
struct row_place {
    std::int64_t row;
    std::int64_t first;  ///< its first element
    std::int64_t width;  ///< 0 beyond the last row

    __device__ row_place(std::int64_t rows, std::int64_t row_width)
        : row{static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y}, first{row * row_width}, width{row < rows ? row_width : 0}
    {
    }

    /// The number of the k-th chunk that this thread keeps.
    __device__ std::int64_t chunk(int k) const { return threadIdx.x + static_cast<std::int64_t>(k) * blockDim.x; }

    __device__ bool speaks() const { return width > 0 && threadIdx.x == 0; }
};

/// Reads this thread's chunks of a run, all of them in flight at once.
template <bool Whole, class T>
__device__ void load_kept(chunk<T> (&kept)[kept_chunks], T const* run, row_place const& place)
{
    for (int k = 0; k < kept_chunks; ++k) {
        kept[k] = load<Whole>(run, place.width, place.chunk(k));
    }
}

/// f(std::true_type or std::false_type), so that the kernel for whole chunks is another one.
template <class F>
void choose(bool whole, F f)
{
    whole ? f(std::true_type{}) : f(std::false_type{});
}

}  // namespace rheo::inline v0::cuda
