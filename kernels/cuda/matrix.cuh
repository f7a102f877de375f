#pragma once
// SPDX-License-Identifier: Apache-2.0

// Products of small matrices of bfloat16 by a warp's tensor cores (PTX's mma.m16n8k16, from compute capability 8.0 on), and what feeds
// them: rows of shared memory that are filled by asynchronous copies and read by ldmatrix. Lane l of the warp is (g, t) =
// (l / 4, l % 4) below. Sums are float; the order of a product's sixteen terms is the hardware's, the same every time.

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "rheo/tensor/bfloat16.hpp"

namespace rheo::inline v0::cuda {

/// 16 rows x 16 terms. Pairs of columns (2t, 2t + 1): of rows g and g + 8, then the same of columns + 8.
struct left_tile {
    std::uint32_t at[4];
};
/// 16 terms x 8 columns. Of column g the pairs of terms (2t, 2t + 1), then + 8.
struct right_tile {
    std::uint32_t at[2];
};
/// 16 rows x 8 columns. Columns 2t and 2t + 1 of row g, then of row g + 8.
struct sum_tile {
    float at[4];
};

/// sum += left right
__device__ inline void multiply_add(sum_tile& sum, left_tile const& left, right_tile const& right)
{
#ifdef __CUDA_EMULATED__
    emulated::multiply_add(sum.at, left.at, right.at);
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sum.at[0]), "+f"(sum.at[1]), "+f"(sum.at[2]), "+f"(sum.at[3])
                 : "r"(left.at[0]), "r"(left.at[1]), "r"(left.at[2]), "r"(left.at[3]), "r"(right.at[0]), "r"(right.at[1]));
#endif
}

/// Four 8 x 8 matrices of shared memory: lane 8 m + r gives row r of matrix m, the 16 bytes at `offset` from `first`, and gets elements
/// (2t, 2t + 1) of row g of each; transposed, those of column g.
template <bool Transposed>
__device__ void load_matrices(std::uint32_t (&to)[4], bfloat16 const* first, unsigned offset)
{
#ifdef __CUDA_EMULATED__
    emulated::load_matrices(to, reinterpret_cast<std::byte const*>(first) + offset, Transposed);
#else
    auto const address = static_cast<unsigned>(__cvta_generic_to_shared(first)) + offset;
    if constexpr (Transposed) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address));
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address));
    }
#endif
}

/// Begins to copy 16 bytes, or 8, into shared memory; zeros where not `inside`, and then nothing is read.
template <int Bytes = 16>
__device__ void begin_copy(void* shared, void const* global, bool inside)
{
    static_assert(Bytes == 16 || Bytes == 8, "an asynchronous copy is of 16 bytes or of 8 here");
#ifdef __CUDA_EMULATED__
    emulated::begin_copy(shared, global, Bytes, inside);
#else
    auto const address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    if constexpr (Bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global), "r"(inside ? 16 : 0));
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(address), "l"(global), "r"(inside ? 8 : 0));
    }
#endif
}

/// The copies that this thread began since the last call are one group.
__device__ inline void end_group()
{
#ifdef __CUDA_EMULATED__
    emulated::end_group();
#else
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most `Pending` of this thread's groups are under way. Others see what it copied after a barrier.
template <int Pending>
__device__ void await_groups()
{
#ifdef __CUDA_EMULATED__
    emulated::await_groups(Pending);
#else
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#endif
}

/// Begins to fill `Rows` rows of shared memory, whose elements from `column` on lie at place(row, column), by a block of `Threads` threads: `width`
/// columns, a multiple of 8, of the `rows` rows that there are, from one to the next `step` elements; the rest are zeros.
/// @pre `from` and `step` are multiples of 16 bytes
template <int Rows, int Threads, int Width, class Place>
__device__ void fill_rows(bfloat16 const* from, std::int64_t step, std::int64_t rows, int width, int thread, Place place)
{
    constexpr int chunks = Width / 8;
    constexpr int at_once = Threads / chunks;  // rows; a thread keeps its column
    static_assert(Threads % chunks == 0 && Rows % at_once == 0, "threads fill whole rows, and all rows as often");
    int const column = thread % chunks * 8;
    int const row = thread / chunks;
    int const end = column >= width ? 0 : static_cast<int>(rows < Rows ? rows : Rows);
    auto const* source = from + row * step + column;  // beyond the rows that there are nothing is read
#pragma unroll
    for (int r = 0; r < Rows; r += at_once) {
        begin_copy(place(row + r, column), source, row + r < end);
        source += at_once * step;
    }
}

/// Rows of `Width` bfloat16 in shared memory, whose chunks of 16 bytes are exchanged within a row so that eight rows of one
/// column of chunks lie in different banks: chunk c of row r is at place c xor r % 8.
template <int Width>
struct shared_rows {
    static_assert(Width % 64 == 0, "a row is eight chunks or a multiple of them");
    bfloat16* first;

    /// The left tile of rows row .. row + 15, whose terms are columns term .. term + 15. @pre multiples of 16, as below
    __device__ left_tile left(int row, int term, int lane) const
    {
        left_tile result;
        load_matrices<false>(result.at, first, across(row, term, lane));
        return result;
    }

    /// Two right tiles side by side whose columns are rows row .. row + 15 of this, and whose terms are its columns: a product
    /// with the transposed of this.
    __device__ void right_transposed(right_tile (&tiles)[2], int row, int term, int lane) const
    {
        std::uint32_t four[4];
        load_matrices<false>(four, first, down(row, term, lane));
        tiles[0] = {{four[0], four[1]}};
        tiles[1] = {{four[2], four[3]}};
    }

    /// Two right tiles side by side whose terms are rows row .. row + 15 of this and whose columns are columns column .. column + 15.
    __device__ void right(right_tile (&tiles)[2], int row, int column, int lane) const
    {
        std::uint32_t four[4];
        load_matrices<true>(four, first, across(row, column, lane));
        tiles[0] = {{four[0], four[1]}};
        tiles[1] = {{four[2], four[3]}};
    }

    /// See fill_rows.
    template <int Rows, int Threads>
    __device__ void fill(bfloat16 const* from, std::int64_t step, std::int64_t rows, int width, int thread) const
    {
        fill_rows<Rows, Threads, Width>(from, step, rows, width, thread,
                                        [&](int row, int column) { return first + row * Width + ((column / 8 ^ (row & 7)) * 8); });
    }

private:
    // Offsets of the four matrices of a 16 x 16 part, the second of them below the first, or beside it. A column's number is a constant where
    // loops are unrolled, so what is exchanged depends on the lane alone and is the same for all rows.
    __device__ static unsigned across(int row, int column, int lane)
    {
        return bytes(row + (lane / 8 & 1) * 8 + lane % 8) + (static_cast<unsigned>(lane / 16 ^ lane % 8) << 4 ^ static_cast<unsigned>(column) * 2U);
    }
    __device__ static unsigned down(int row, int column, int lane)
    {
        return bytes(row + lane / 16 * 8 + lane % 8) + (static_cast<unsigned>((lane / 8 & 1) ^ lane % 8) << 4 ^ static_cast<unsigned>(column) * 2U);
    }
    __device__ static unsigned bytes(int row) { return static_cast<unsigned>(row) * Width * 2U; }
};

}  // namespace rheo::inline v0::cuda
