#pragma once
// SPDX-License-Identifier: Apache-2.0

// The warp's tensor cores and the asynchronous copies, as kernels/cuda/matrix.cuh uses them; included by cuda_runtime.h.
// A copy is made when it is waited for and no sooner, so a wait that is missing shows: what was there before is read. Where threads run ahead
// it is made at once, so a barrier that is missing before it shows.

#include <cstdint>

namespace emulated {

/// sum[4] += left[4] right[2], the fragments of mma.m16n8k16 with bfloat16; all lanes of the warp call it.
void multiply_add(float* sum, std::uint32_t const* left, std::uint32_t const* right);

/// ldmatrix x4: to[4]; all lanes of the warp call it.
void load_matrices(std::uint32_t* to, void const* row, bool transposed);

void begin_copy(void* shared, void const* global, bool inside);
void end_group();
void await_groups(int pending);

}  // namespace emulated
