#pragma once
// SPDX-License-Identifier: Apache-2.0

// Rows that are read once and kept in registers: up to four chunks of 16 bytes in each thread, as many threads as that takes. Rows
// of up to 128 chunks have a warp each, four of them in a block, and need no barrier. What a thread holds follows from the row's width alone.
// Where the elements of a row need not meet, wide rows are cut into tiles, each a block's, and so are runs that have no rows.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/vector.cuh"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::cuda {

inline constexpr int items_per_thread = 4;
inline constexpr int most_row_threads = 1024;

/// Threads of a row. @pre a row fits the registers of a block
template <class T>
unsigned row_threads(std::int64_t width)
{
    auto const wanted = (chunks_in<T>(width) + items_per_thread - 1) / items_per_thread;
    expects(wanted <= most_row_threads, "a row that a kernel keeps in registers has at most 16384 floats or 32768 bfloat16");
    return static_cast<unsigned>(std::max<std::int64_t>(1, (wanted + warp_size - 1) / warp_size) * warp_size);
}

/// The launch of one thread row per row, with temporary storage for block_reduce of `values`.
template <class T>
launch_shape shape_of_rows(std::int64_t rows, std::int64_t width, int values)
{
    auto const threads = row_threads<T>(width);
    unsigned const each = threads == warp_size ? 4 : 1;
    return {.grid = blocks_for(rows, each),
            .block = {threads, each},
            .shared_bytes = threads == warp_size ? 0 : sizeof(float) * static_cast<std::size_t>(values * warp_size)};
}

inline constexpr int tile_chunks = 1024;  // of a block of 256 threads

/// The launch of one thread row per row, or per tile of it, when its elements are independent of each other.
template <class T>
launch_shape shape_of_tiles(std::int64_t rows, std::int64_t width)
{
    auto const chunks = std::max<std::int64_t>(1, chunks_in<T>(width));
    auto const tiles = (chunks + tile_chunks - 1) / tile_chunks;
    auto const threads = blocks_for((chunks + tiles - 1) / tiles, items_per_thread * warp_size) * warp_size;
    unsigned const each = threads == warp_size ? 4 : 1;
    expects(tiles <= 65535, "a row of independent elements has at most 65535 tiles of 16 KiB");
    return {.grid = {blocks_for(rows, each), static_cast<unsigned>(tiles)}, .block = {threads, each}};
}

/// The launch over `count` elements without rows.
template <class T>
launch_shape shape_of_run(std::int64_t count)
{
    return {.grid = blocks_for(chunks_in<T>(count), tile_chunks), .block = tile_chunks / items_per_thread};
}

/// The number of the k-th chunk that the running thread of such a launch has.
__device__ inline std::int64_t run_chunk(int k) { return (static_cast<std::int64_t>(blockIdx.x) * items_per_thread + k) * blockDim.x + threadIdx.x; }

/// The row of the running thread; rows beyond the last one are empty, so that their threads take part in everything.
struct row_place {
    std::int64_t row;
    std::int64_t first;  ///< its first element
    std::int64_t width;  ///< 0 beyond the last row

    __device__ row_place(std::int64_t rows, std::int64_t row_width) : row_place{rows, row_width, static_cast<std::int64_t>(blockIdx.x) * blockDim.y} {}

    /// In a block whose first row is another one than its number says.
    __device__ row_place(std::int64_t rows, std::int64_t row_width, std::int64_t first_of_block)
        : row{first_of_block + threadIdx.y}, first{row * row_width}, width{row < rows ? row_width : 0}
    {
    }

    /// The number of the k-th chunk that this thread keeps.
    __device__ std::int64_t chunk(int k) const { return threadIdx.x + (static_cast<std::int64_t>(blockIdx.y) * items_per_thread + k) * blockDim.x; }

    /// Whether element e of it is within the row.
    template <bool Whole, class T>
    __device__ bool holds(int k, int e) const
    {
        return chunk(k) * chunk_size<T> + (Whole ? 0 : e) < width;
    }

    __device__ bool is_first_thread() const { return width > 0 && threadIdx.x == 0; }
};

/// Reads this thread's chunks of a run, all of them in flight at once.
template <bool Whole, class T>
__device__ void load_striped(chunk<T> (&items)[items_per_thread], T const* run, row_place const& place)
{
    for (int k = 0; k < items_per_thread; ++k) {
        items[k] = load<Whole>(run, place.width, place.chunk(k));
    }
}

/// Writes them.
template <bool Whole, class T>
__device__ void store_striped(T* run, row_place const& place, chunk<T> const (&items)[items_per_thread])
{
    for (int k = 0; k < items_per_thread; ++k) {
        store<Whole>(run, place.width, place.chunk(k), items[k]);
    }
}

/// What arrives past the operation joins the k-th chunk of a row's gradient, where storing has rounded it; null is none.
template <bool Whole, class T>
__device__ void add_bypass(float (&gradient)[chunk_size<T>], T const* bypass_gradient, row_place const& place, int k)
{
    if (bypass_gradient != nullptr) {
        auto const bypass = load<Whole>(bypass_gradient + place.first, place.width, place.chunk(k));
        for (int e = 0; e < chunk_size<T>; ++e) {
            gradient[e] = rounded<T>(gradient[e]) + bypass.at(e);
        }
    }
}

/// f(whole, most threads of a block): up to 512 threads a block may have twice the registers.
template <class F>
void choose_row(bool whole, launch_shape const& shape, F f)
{
    if (whole && shape.block.x <= most_row_threads / 2) {
        f(std::true_type{}, std::integral_constant<int, most_row_threads / 2>{});
    } else if (whole) {
        f(std::true_type{}, std::integral_constant<int, most_row_threads>{});
    } else {
        f(std::false_type{}, std::integral_constant<int, most_row_threads>{});
    }
}

/// f(std::true_type or std::false_type), so that the kernel for whole chunks is another one.
template <class F>
void choose(bool whole, F f)
{
    whole ? f(std::true_type{}) : f(std::false_type{});
}

}  // namespace rheo::inline v0::cuda
