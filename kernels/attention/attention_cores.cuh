#pragma once
// SPDX-License-Identifier: Apache-2.0

// Attention's products on two kinds of tensor cores: those of a warp, which every device from compute capability 8.0 on has, and those of a
// warpgroup, which 9.0 has. A kernel is one text for both; what it is written in:
//
//     Cores::rows<Rows, Width>                 rows in shared memory, filled by asynchronous copies
//     Cores::show_copies()                     between the wait for copies and the barrier after it
//     Cores::begin(); set_product_transposed(...)...; Cores::await(sums...)
//     add_weighted_rows(...)                   begins and awaits by itself
//
// All warps do this with the same rows. A warp's sums are tiles of its own rows for both kinds.

#include <limits>

#include "kernels/attention/attention_heads.cuh"
#include "kernels/cuda/approximate.cuh"
#include "kernels/cuda/matrix.cuh"
#include "kernels/cuda/vector.cuh"
#include "kernels/cuda/warpgroup.cuh"

namespace rheo::inline v0::cuda {

/// A warp's sums: `Rows` tiles of 16 rows by `Columns` tiles of 8 columns.
template <int Rows, int Columns>
struct warp_sums {
    sum_tile tile[Rows][Columns];
};

/// Where an element of a tile stands: the row within the tile's 16 and the column within its 8.
__device__ inline int row_in_tile(int element, int lane) { return lane / 4 + element / 2 * 8; }
__device__ inline int column_in_tile(int element, int lane) { return lane % 4 * 2 + element % 2; }

inline constexpr float no_score = -std::numeric_limits<float>::infinity();  // power_of_two of it is zero

/// sums = left right^T over `Width` terms; left's rows begin at `left_row`, right's at 0.
template <int Rows, int Columns, int Width>
__device__ void set_product_transposed(warp_sums<Rows, Columns>& sums, shared_rows<Width> left, int left_row, shared_rows<Width> right, int lane)
{
    sums = {};
#pragma unroll
    for (int term = 0; term < Width; term += 16) {
        left_tile rows[Rows];
#pragma unroll
        for (int m = 0; m < Rows; ++m) {
            rows[m] = left.left(left_row + m * 16, term, lane);
        }
#pragma unroll
        for (int n = 0; n < Columns; n += 2) {
            right_tile columns[2];
            right.right_transposed(columns, n * 8, term, lane);
#pragma unroll
            for (int m = 0; m < Rows; ++m) {
                multiply_add(sums.tile[m][n], rows[m], columns[0]);
                multiply_add(sums.tile[m][n + 1], rows[m], columns[1]);
            }
        }
    }
}

/// Two tiles of sums side by side as a left tile of the next product.
__device__ inline left_tile rounded(sum_tile const& low, sum_tile const& high)
{
    return {
        {two_bfloat16(low.at[0], low.at[1]), two_bfloat16(low.at[2], low.at[3]), two_bfloat16(high.at[0], high.at[1]), two_bfloat16(high.at[2], high.at[3])}};
}

/// sums += weights rows, the weights rounded to bfloat16: [16 Rows, 8 Terms] x [8 Terms, Width].
template <int Rows, int Terms, int Width>
__device__ void add_weighted_rows(warp_sums<Rows, Width / 8>& sums, warp_sums<Rows, Terms> const& weights, shared_rows<Width> rows, int lane)
{
#pragma unroll
    for (int k = 0; k < Terms; k += 2) {
        left_tile left[Rows];
#pragma unroll
        for (int m = 0; m < Rows; ++m) {
            left[m] = rounded(weights.tile[m][k], weights.tile[m][k + 1]);
        }
#pragma unroll
        for (int n = 0; n < Width / 8; n += 2) {
            right_tile right[2];
            rows.right(right, k * 8, n * 8, lane);
#pragma unroll
            for (int m = 0; m < Rows; ++m) {
                multiply_add(sums.tile[m][n], left[m], right[0]);
                multiply_add(sums.tile[m][n + 1], left[m], right[1]);
            }
        }
    }
}

/// The same on a warpgroup: `left_row` is the warp's, of whose group the rows are.
template <int Columns, int LeftRows, int RightRows, int Width>
__device__ void set_product_transposed(warp_sums<1, Columns>& sums, group_rows<LeftRows, Width> left, int left_row, group_rows<RightRows, Width> right, int)
{
    static_assert(RightRows == Columns * 8, "all rows of the right matrix are columns of the sums");
#pragma unroll
    for (int term = 0; term < Width; term += 16) {
        multiply_across(sums.tile[0], left.terms_across(left_row & ~63, term), right.terms_across(0, term), term > 0);
    }
}

template <int Terms, int Width>
__device__ void add_weighted_rows(warp_sums<1, Width / 8>& sums, warp_sums<1, Terms> const& weights, group_rows<Terms * 8, Width> rows, int)
{
    left_tile left[Terms / 2];
#pragma unroll
    for (int k = 0; k < Terms; k += 2) {
        left[k / 2] = rounded(weights.tile[0][k], weights.tile[0][k + 1]);
    }
    keep_in_place(sums.tile[0]);  // nothing that is done to them waits until after the fence
    keep_in_place(left);
    begin_products();
#pragma unroll
    for (int k = 0; k < Terms; k += 2) {
        multiply_down(sums.tile[0], left[k / 2], rows.terms_down(k * 8));
    }
    await_products(sums.tile[0], left);
}

/// The tensor cores of each warp by itself.
struct of_warps {
    static constexpr bool compiled = true;
    template <int Rows, int Width>
    using rows = shared_rows<Width>;

    __device__ static void show_copies() {}
    __device__ static void begin() {}
    template <class... Sums>
    __device__ static void await(Sums&...)
    {
    }
};

/// Those of four warps at a time.
struct of_warpgroups {
    static constexpr bool compiled = compiles_warpgroups;
    template <int Rows, int Width>
    using rows = group_rows<Rows, Width>;

    __device__ static void show_copies() { show_copies_to_products(); }
    __device__ static void begin() { begin_products(); }
    template <class... Sums>
    __device__ static void await(Sums&... sums)
    {
        await_products(sums.tile[0]...);
    }
};

/// Writes f(row, column, x, y), a pair, for the sums x and y at columns column and column + 1: rows from `first_row` on of `to`, of which
/// there are `count`, `width` columns of each.
template <int Rows, int Columns, class F>
__device__ void write_pairs(warp_sums<Rows, Columns> const& sums, head_rows<bfloat16> to, int first_row, std::int64_t count, std::int64_t width, int lane, F f)
{
#pragma unroll
    for (int m = 0; m < Rows; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            int const row = first_row + m * 16 + half * 8 + lane / 4;
            if (row >= count) {
                continue;
            }
#pragma unroll
            for (int n = 0; n < Columns; ++n) {
                int const column = n * 8 + lane % 4 * 2;
                if (column < width) {
                    auto const& tile = sums.tile[m][n].at;
                    *reinterpret_cast<std::uint32_t*>(to.first + row * to.step + column) = f(row, column, tile[half * 2], tile[half * 2 + 1]);
                }
            }
        }
    }
}

}  // namespace rheo::inline v0::cuda
