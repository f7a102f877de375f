#pragma once
// SPDX-License-Identifier: Apache-2.0

// Blocks of runs of exact sums, which CUB loads and stores, and what a block adds to them: alone, and beside other work of a launch.

#include <cstdint>

#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>

#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/exact/exact_panel.hpp"

namespace rheo::inline v0::cuda {

// A thread takes two neighbouring sums, 16 bytes, at a time, eight times over; a warp reads and writes without gaps.
inline constexpr int pair_threads = 256;
inline constexpr std::int64_t pairs_of_block = std::int64_t{pair_threads} * 8 * 2;  ///< elements

/// Whether runs of `count` elements from each pointer on can be read in whole pairs.
template <class... T>
bool in_pairs(std::int64_t count, T const*... from)
{
    return count % 2 == 0 && ((reinterpret_cast<std::uintptr_t>(from) % (2 * sizeof(T)) == 0) && ...);
}

/// A thread's elements of a block of a run, in pairs or one by one.
template <class T, bool Whole>
struct block_items {
    static constexpr int width = Whole ? 2 : 1;
    static constexpr int size = static_cast<int>(pairs_of_block / pair_threads);
    struct alignas(width * sizeof(T)) [[gnu::may_alias]] item {
        T at[width];
    };

    item items[size / width];

    __device__ T& operator[](int i) { return items[i / width].at[i % width]; }
    __device__ T operator[](int i) const { return items[i / width].at[i % width]; }

    /// Items of the run from the block's first element on.
    __device__ static int items_from(std::int64_t first, std::int64_t count)
    {
        return static_cast<int>((count - first < pairs_of_block ? count - first : pairs_of_block) / width);
    }
};

/// Elements beyond the run are zero.
template <bool Whole, class T>
__device__ block_items<T, Whole> load_block(T const* run, std::int64_t count, std::int64_t block)
{
    using result = block_items<T, Whole>;
    result loaded;
    std::int64_t const first = block * pairs_of_block;
    cub::LoadDirectStriped<pair_threads>(static_cast<int>(threadIdx.x), reinterpret_cast<typename result::item const*>(run + first), loaded.items,
                                         result::items_from(first, count), typename result::item{});
    return loaded;
}

template <class T, bool Whole>
__device__ void store_block(T* run, std::int64_t count, std::int64_t block, block_items<T, Whole> const& values)
{
    using items = block_items<T, Whole>;
    std::int64_t const first = block * pairs_of_block;
    cub::StoreDirectStriped<pair_threads>(static_cast<int>(threadIdx.x), reinterpret_cast<typename items::item*>(run + first), values.items,
                                          items::items_from(first, count));
}

/// Adds the block's part of a contribution.
template <bool Whole, class T>
__device__ void accumulate_block(std::int64_t block, std::int64_t count, T const* gradient, gradient_sum_of<dtype::i64> const& target)
{
    auto const g = load_block<Whole>(gradient, count, block);
    auto sums = load_block<Whole>(target.sums, count, block);
    exact_adder adder{target};
    for (int i = 0; i < sums.size; ++i) {
        sums[i] = adder.sum_with(sums[i], float(g[i]));  // beyond the run: zero, which changes nothing
    }
    store_block(target.sums, count, block, sums);
    adder.merge();
}

/// A panel of a gradient as runs of sums, each with blocks of its own.
struct panel_runs {
    unsigned blocks_of_run;
    std::int64_t count;     ///< elements of a run
    float const* gradient;  // [runs, count]
    gradient_sum_of<dtype::i64> target;
    std::int64_t step;  ///< sums from run to run
    unsigned blocks;    ///< of all runs
    bool whole;         ///< they can be read in pairs
};

/// Rows that follow each other without a gap are one run.
inline panel_runs runs_of(exact_panel_arguments<dtype::i64> const& a)
{
    rheo::detail::expect_panel(a);
    bool const joined = a.columns == a.width || a.rows == 1;
    std::int64_t const runs = joined ? 1 : a.rows;
    std::int64_t const count = joined ? a.rows * a.columns : a.columns;
    auto const blocks = blocks_for(count, pairs_of_block);
    return {.blocks_of_run = blocks,
            .count = count,
            .gradient = a.gradient,
            .target = a.target,
            .step = a.width,
            .blocks = static_cast<unsigned>(runs * blocks),
            .whole = in_pairs(count, a.gradient, a.target.sums) && (joined || a.width % 2 == 0)};
}

/// Adds a block's part of a panel.
template <bool Whole>
__device__ void accumulate_block(unsigned block, panel_runs const& runs)
{
    unsigned const run = block / runs.blocks_of_run;
    auto target = runs.target;
    target.sums += run * runs.step;
    accumulate_block<Whole>(block % runs.blocks_of_run, runs.count, runs.gradient + run * runs.count, target);
}

}  // namespace rheo::inline v0::cuda
