#pragma once
// SPDX-License-Identifier: Apache-2.0

// Work on each row and sums over the same rows in one launch, as the backward of a norm is: for each 256 rows first the blocks that add
// up their columns, then the blocks that have the rows, so that the second reader of a row finds it in the cache. What each computes, and in
// which order it adds, is what it would be in a launch of its own.

#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/rows.cuh"

namespace rheo::inline v0::cuda {

/// Rows of a block that has `threads` for each: at least column_threads in all, and a divisor of column_rows.
constexpr unsigned rows_of_block(unsigned threads)
{
    unsigned rows = 1;
    while (rows * threads < column_threads) {
        rows *= 2;
    }
    return rows;
}
static_assert(rows_of_block(32) == 8 && rows_of_block(96) == 4 && rows_of_block(256) == 1 && column_rows % rows_of_block(32) == 0);

/// `row_values` for block_reduce in each row, `column_values` sums per column. @pre as of shape_of_rows and shape_of_columns
template <class T>
launch_shape shape_of_rows_and_columns(std::int64_t rows, std::int64_t width, int row_values, int column_values, workspace scratch)
{
    auto const threads = row_threads<T>(width);
    auto const each = rows_of_block(threads);
    auto const columns = shape_of_columns<T>(rows, width, column_values, scratch);
    auto const joined = sizeof(float) * static_cast<std::size_t>(row_values * warp_size) * each;
    return {.grid = columns.grid.y * columns.grid.x + blocks_for(rows, each), .block = {threads, each}, .shared_bytes = std::max(joined, columns.shared_bytes)};
}

/// Calls by_columns(place) or by_rows(first row) in the block's part of such a launch.
template <class T, class Columns, class Rows>
__device__ void rows_and_columns(std::int64_t width, Columns by_columns, Rows by_rows)
{
    auto const tiles = static_cast<unsigned>((width + block_columns<T> - 1) / block_columns<T>);
    unsigned const group_blocks = tiles + column_rows / blockDim.y;
    unsigned const group = blockIdx.x / group_blocks;
    unsigned const part = blockIdx.x % group_blocks;
    if (part < tiles) {
        by_columns(column_place{.tile = part, .group = group, .groups = (gridDim.x + group_blocks - 1) / group_blocks});
    } else {
        by_rows(std::int64_t{group} * column_rows + (part - tiles) * blockDim.y);
    }
}

}  // namespace rheo::inline v0::cuda
