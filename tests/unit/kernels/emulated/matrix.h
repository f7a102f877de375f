#pragma once
// SPDX-License-Identifier: Apache-2.0

// Tensor cores and asynchronous copies, as kernels/cuda/matrix.cuh and warpgroup.cuh use them; included by cuda_runtime.h.
// A copy, or a product of a warpgroup, is made when it is waited for and no sooner, so a wait that is missing shows: what was there before is
// read. Where threads run ahead it is made at once, so a barrier that is missing before it shows.

#include <cstdint>

namespace emulated {

/// sum[4] += left[4] right[2], the fragments of mma.m16n8k16 with bfloat16; all lanes of the warp call it.
void multiply_add(float* sum, std::uint32_t const* left, std::uint32_t const* right);

/// ldmatrix x4: to[4]; all lanes of the warp call it.
void load_matrices(std::uint32_t* to, void const* row, bool transposed);

void begin_copy(void* shared, void const* global, int bytes, bool inside);
void end_group();
void await_groups(int pending);

/// Of a pointer into the block's shared memory.
unsigned shared_address(void const* p);
/// fence.proxy.async; products that find copies of the block which are there and not shown are a fault.
void show_copies_to_products();
/// wgmma.fence, without which products are a fault.
void begin_products();
/// wgmma.mma_async.m64nNk16 with bfloat16 and float: sums[N / 8][4] (=, +=) left right^T, both described as rows that hold the terms.
void multiply_across(float* sums, int columns, std::uint64_t left, std::uint64_t right, bool adds);
/// The same, sums += left[4] right, the fragment of 16 terms and a described matrix whose rows are the terms; all lanes of the warp call it.
void multiply_down(float* sums, int columns, std::uint32_t const* left, std::uint64_t right);
/// wgmma.commit_group and wgmma.wait_group 0
void await_products();

}  // namespace emulated
