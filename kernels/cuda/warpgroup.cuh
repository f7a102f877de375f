#pragma once
// SPDX-License-Identifier: Apache-2.0

// Products of matrices of bfloat16 by the tensor cores of a warpgroup, four warps one after the other (PTX's wgmma, which compute capability 9.0
// has and no other). The right matrix is read from shared memory, the left one from there or from registers; sums are float, of 64 rows by 8
// Columns, and lie as the tiles of matrix.cuh do, warp w of the group holding rows 16 w .. 16 w + 15. Products are asynchronous:
//
//     keep_in_place(sums);          // where they are added to: nothing that is done to them waits until after the fence
//     begin_products();             // what the registers hold is final
//     multiply_across(sums, ...);
//     await_products(sums);         // sums may be read, and what the products read may be written again

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>

#include "kernels/cuda/matrix.cuh"
#include "rheo/tensor/bfloat16.hpp"

namespace rheo::inline v0::cuda {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900 && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "compute_90 has no warpgroup instructions, so attention would be empty kernels: compile for sm_90a, which runs on the same devices"
#endif

/// Whether this pass of the compiler is for a device that has these instructions.
#if defined(__CUDA_EMULATED__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
inline constexpr bool compiles_warpgroups = true;
#else
inline constexpr bool compiles_warpgroups = false;
#endif

/// Where shared memory's addresses count from is the device's affair.
__device__ inline unsigned shared_address(void const* p)
{
#ifdef __CUDA_EMULATED__
    return emulated::shared_address(p);
#else
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
#endif
}

/// `Rows` rows of `Width` bfloat16 in shared memory, as panels of 64 columns one after the other, so that a row of a panel is 128 bytes; chunks of
/// 16 bytes are exchanged within a row as in shared_rows, which wgmma calls swizzling by 128 bytes. @pre `first` is a multiple of 1024 bytes
template <int Rows, int Width>
struct group_rows {
    static_assert(Width % 64 == 0 && Rows % 8 == 0, "rows come in panels of 8 x 64");
    bfloat16* first;

    /// See fill_rows.
    template <int Filled, int Threads>
    __device__ void fill(bfloat16 const* from, std::int64_t step, std::int64_t rows, int width, int thread) const
    {
        static_assert(Filled == Rows, "all rows are filled at once");
        fill_rows<Rows, Threads, Width>(from, step, rows, width, thread,
                                        [&](int row, int column) { return first + column / 64 * panel + row * 64 + ((column % 64 / 8 ^ (row & 7)) * 8); });
    }

    /// For wgmma: the rows from `row` on, whose columns term .. term + 15 are the terms of a product. @pre multiples of 8 and of 16
    __device__ std::uint64_t terms_across(int row, int term) const
    {
        return described(first + term / 64 * panel + row * 64 + term % 64, 16);  // the second number is not used
    }
    /// For wgmma: rows row .. row + 15 are the terms, the columns from 0 on those of the product. @pre a multiple of 8
    __device__ std::uint64_t terms_down(int row) const { return described(first + row * 64, panel * 2); }

private:
    static constexpr int panel = Rows * 64;

    // PTX ISA, "Matrix descriptor" of wgmma: where it begins, from one panel to the next, from eight rows to the next eight, 128-byte swizzling.
    __device__ static std::uint64_t described(bfloat16 const* from, int to_next_panel)
    {
        constexpr std::uint64_t eight_rows = 8 * 128;
        constexpr std::uint64_t swizzled_by_128 = 1;
        return (shared_address(from) & 0x3ffffU) >> 4 | static_cast<std::uint64_t>(to_next_panel >> 4) << 16 | eight_rows >> 4 << 32 | swizzled_by_128 << 62;
    }
};

/// What this thread's copies (matrix.cuh) have brought is seen by the products of those who pass the next barrier with it. After await_groups.
__device__ inline void show_copies_to_products()
{
#ifdef __CUDA_EMULATED__
    emulated::show_copies_to_products();
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/// Before products: what this thread's registers hold may be read by them. All threads of the warpgroup call this, and all below.
__device__ inline void begin_products()
{
#ifdef __CUDA_EMULATED__
    emulated::begin_products();
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

/// The compiler leaves these registers as they are up to here: products may have been reading or writing them.
template <class Tile, int Count>
__device__ void keep_in_place([[maybe_unused]] Tile (&tiles)[Count])
{
#ifndef __CUDA_EMULATED__
#pragma unroll
    for (int c = 0; c < Count; ++c) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            if constexpr (std::is_same_v<Tile, sum_tile>) {
                asm volatile("" : "+f"(tiles[c].at[e])::"memory");
            } else {
                asm volatile("" : "+r"(tiles[c].at[e])::"memory");
            }
        }
    }
#endif
}

#define RHEO_SUM(c) "+f"(sums[c].at[0]), "+f"(sums[c].at[1]), "+f"(sums[c].at[2]), "+f"(sums[c].at[3])
#define RHEO_8_SUMS(c) RHEO_SUM(c), RHEO_SUM(c + 1), RHEO_SUM(c + 2), RHEO_SUM(c + 3), RHEO_SUM(c + 4), RHEO_SUM(c + 5), RHEO_SUM(c + 6), RHEO_SUM(c + 7)
#define RHEO_32_PLACES "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define RHEO_64_PLACES \
    RHEO_32_PLACES ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"

/// sums = left right^T, or that is added to them, over sixteen terms; left and right are described by terms_across.
template <int Columns>
__device__ void multiply_across(sum_tile (&sums)[Columns], std::uint64_t left, std::uint64_t right, bool adds)
{
    static_assert(Columns == 8 || Columns == 16, "a product of a warpgroup has 64 or 128 columns here");
#ifdef __CUDA_EMULATED__
    emulated::multiply_across(sums[0].at, Columns * 8, left, right, adds);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    if constexpr (Columns == 8) {
        asm volatile("{.reg .pred adds; setp.ne.b32 adds, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" RHEO_32_PLACES
                     "}, %32, %33, adds, 1, 1, 0, 0;}"
                     : RHEO_8_SUMS(0)
                     : "l"(left), "l"(right), "r"(static_cast<int>(adds)));
    } else {
        asm volatile("{.reg .pred adds; setp.ne.b32 adds, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" RHEO_64_PLACES
                     "}, %64, %65, adds, 1, 1, 0, 0;}"
                     : RHEO_8_SUMS(0), RHEO_8_SUMS(8)
                     : "l"(left), "l"(right), "r"(static_cast<int>(adds)));
    }
#endif
}

/// sums += left right over sixteen terms: left of this thread's registers, right described by terms_down.
template <int Columns>
__device__ void multiply_down(sum_tile (&sums)[Columns], left_tile const& left, std::uint64_t right)
{
    static_assert(Columns == 8 || Columns == 16, "a product of a warpgroup has 64 or 128 columns here");
#ifdef __CUDA_EMULATED__
    emulated::multiply_down(sums[0].at, Columns * 8, left.at, right);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    if constexpr (Columns == 8) {
        asm volatile("{.reg .pred adds; setp.eq.b32 adds, 0, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" RHEO_32_PLACES
                     "}, {%32,%33,%34,%35}, %36, adds, 1, 1, 1;}"
                     : RHEO_8_SUMS(0)
                     : "r"(left.at[0]), "r"(left.at[1]), "r"(left.at[2]), "r"(left.at[3]), "l"(right));
    } else {
        asm volatile("{.reg .pred adds; setp.eq.b32 adds, 0, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" RHEO_64_PLACES
                     "}, {%64,%65,%66,%67}, %68, adds, 1, 1, 1;}"
                     : RHEO_8_SUMS(0), RHEO_8_SUMS(8)
                     : "r"(left.at[0]), "r"(left.at[1]), "r"(left.at[2]), "r"(left.at[3]), "l"(right));
    }
#endif
}

#undef RHEO_SUM
#undef RHEO_8_SUMS
#undef RHEO_32_PLACES
#undef RHEO_64_PLACES

/// After products: all of them are done. `tiles` are their sums, and what they read of registers.
template <class... Tiles, int... Counts>
__device__ void await_products(Tiles (&... tiles)[Counts])
{
#ifdef __CUDA_EMULATED__
    emulated::await_products();
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
    (keep_in_place(tiles), ...);
}

}  // namespace rheo::inline v0::cuda
