// SPDX-License-Identifier: Apache-2.0
#include "kernels/pack/pack.hpp"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pieces.cuh"

namespace rheo::inline v0::cuda {

namespace {

constexpr int threads = 256;
constexpr int in_flight = 4;
static_assert(threads * in_flight * 16 == pack_block_bytes, "a block moves four chunks of 16 bytes per thread");

/// Chunk `chunk` of a piece, counted through its rows.
struct place {
    std::int64_t row;
    std::int64_t byte;
};

__device__ place place_of(pack_piece const& p, std::int64_t chunk)
{
    std::int64_t const per_row = (p.row_bytes + 15) / 16;
    return {.row = chunk / per_row, .byte = chunk % per_row * 16};
}

__global__ void __launch_bounds__(threads) move(pack_arguments a)
{
    auto const n = piece_of(blockIdx.x, a.first_block, a.piece_count);
    auto const p = a.pieces[n];
    std::int64_t const chunks = p.rows * ((p.row_bytes + 15) / 16);
    std::int64_t const first = (blockIdx.x - a.first_block[n]) * threads * in_flight + threadIdx.x;
    bool const aligned = (reinterpret_cast<std::uintptr_t>(p.from) | reinterpret_cast<std::uintptr_t>(p.to) | static_cast<std::uintptr_t>(p.row_bytes) |
                          static_cast<std::uintptr_t>(p.from_stride) | static_cast<std::uintptr_t>(p.to_stride)) %
                             16 ==
                         0;
    if (aligned) {
        uint4 values[in_flight];
        for (int k = 0; k < in_flight; ++k) {
            if (first + k * threads < chunks) {
                auto const at = place_of(p, first + k * threads);
                values[k] = *reinterpret_cast<uint4 const*>(p.from + at.row * p.from_stride + at.byte);
            }
        }
        for (int k = 0; k < in_flight; ++k) {
            if (first + k * threads < chunks) {
                auto const at = place_of(p, first + k * threads);
                __stwb(reinterpret_cast<uint4*>(p.to + at.row * p.to_stride + at.byte), values[k]);
            }
        }
        return;
    }
    for (int k = 0; k < in_flight && first + k * threads < chunks; ++k) {
        auto const at = place_of(p, first + k * threads);
        for (std::int64_t byte = at.byte; byte < at.byte + 16 && byte < p.row_bytes; ++byte) {
            p.to[at.row * p.to_stride + byte] = p.from[at.row * p.from_stride + byte];
        }
    }
}

}  // namespace

void pack(stream queue, pack_arguments const& a) { launch(queue, {.grid = blocks_for(a.blocks, 1), .block = threads}, move, a); }

}  // namespace rheo::inline v0::cuda
