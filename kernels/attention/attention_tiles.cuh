#pragma once
// SPDX-License-Identifier: Apache-2.0

// Attention in bfloat16 on tensor cores, after FlashAttention-2 (Dao, 2023): scores exist only as tiles in registers; forward keeps a running
// maximum and sum per query. Where we differ: the backward is two kernels, one that owns blocks of keys and one that owns blocks of queries, and
// each makes the scores again. That is seven products in place of five, and no sum depends on which block comes first. Heads of up to
// `Width` elements; what lies beyond the head's own is zero.

#include <limits>

#include "kernels/attention/attention_heads.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matrix.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/vector.cuh"

namespace rheo::inline v0::cuda {

/// A warp's sums: `Rows` tiles of 16 rows by `Columns` tiles of 8 columns.
template <int Rows, int Columns>
struct warp_sums {
    sum_tile tile[Rows][Columns] = {};
};

/// Where an element of a tile stands: the row within the tile's 16 and the column within its 8.
__device__ inline int row_in_tile(int element, int lane) { return lane / 4 + element / 2 * 8; }
__device__ inline int column_in_tile(int element, int lane) { return lane % 4 * 2 + element % 2; }

/// sums += left right^T over `Width` terms; left's rows begin at `left_row`, right's at 0.
template <int Rows, int Columns, int Width>
__device__ void add_product_transposed(warp_sums<Rows, Columns>& sums, shared_rows<Width> left, int left_row, shared_rows<Width> right, int lane)
{
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

/// sums += weights rows, the weights rounded to bfloat16: [16 Rows, 8 Terms] x [8 Terms, Width].
template <int Rows, int Terms, int Width>
__device__ void add_weighted_rows(warp_sums<Rows, Width / 8>& sums, warp_sums<Rows, Terms> const& weights, shared_rows<Width> rows, int lane)
{
#pragma unroll
    for (int k = 0; k < Terms; k += 2) {
        left_tile left[Rows];
#pragma unroll
        for (int m = 0; m < Rows; ++m) {
            auto const& low = weights.tile[m][k].at;
            auto const& high = weights.tile[m][k + 1].at;
            left[m] = {{two_bfloat16(low[0], low[1]), two_bfloat16(low[2], low[3]), two_bfloat16(high[0], high[1]), two_bfloat16(high[2], high[3])}};
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

inline constexpr float no_score = -std::numeric_limits<float>::infinity();
inline constexpr float natural_per_binary = 0.693147181F;  // ln 2

namespace forward_tiles {
inline constexpr int warps = 4;
inline constexpr int rows = 2;  // tiles of a warp
inline constexpr int threads = warps * warp_size;
inline constexpr int queries = warps * rows * 16;
inline constexpr int keys = 64;
template <int Width>
inline constexpr std::size_t shared_bytes = std::size_t{2} * Width * (queries + 2 * keys);
}  // namespace forward_tiles

template <int Width, bool Drops>
__global__ void __launch_bounds__(forward_tiles::threads) attention_forward_tiles(attention_heads<attention_forward_arguments<bf16>> const heads)
{
    using namespace forward_tiles;
    auto const& a = heads.a;
    int const thread = static_cast<int>(threadIdx.x);
    int const lane = thread % warp_size;
    int const own_row = thread / warp_size * rows * 16;
    std::int64_t const first = static_cast<std::int64_t>(gridDim.x - 1 - blockIdx.x) * queries;  // the longest first
    std::int64_t const h = blockIdx.y;
    std::int64_t const b = blockIdx.z;
    int const width = static_cast<int>(heads.head_width);
    auto* const memory = shared_memory<bfloat16>();
    shared_rows<Width> const q{memory};
    shared_rows<Width> const k{memory + queries * Width};
    shared_rows<Width> const v{memory + (queries + keys) * Width};

    /// A block of keys into `to`, or of their values, which lie `offset` elements further.
    auto const load_block = [&](shared_rows<Width> to, std::int64_t number, std::int64_t offset) {
        auto const block = heads.block(number, keys);
        auto const from = heads.keys(b, h / heads.group, block.slice).from(block.first);
        to.template fill<keys, threads>(from.first + offset, from.step, block.count, width, thread);
        end_group();
    };

    auto const from = heads.queries(b, h).from(first);
    q.template fill<queries, threads>(from.first, from.step, a.length - first, width, thread);
    load_block(k, 0, 0);
    warp_sums<rows, Width / 8> out;
    float largest[rows][2];
    float sum[rows][2] = {};
#pragma unroll
    for (int m = 0; m < rows; ++m) {
        largest[m][0] = largest[m][1] = no_score;
    }
    std::int64_t const blocks = heads.seen_blocks(first + queries, keys);
    for (std::int64_t n = 0; n < blocks; ++n) {
        auto const block = heads.block(n, keys);
        await_groups<0>();
        __syncthreads();  // the keys are there, and nobody reads the last values any more
        load_block(v, n, heads.kv_width);
        warp_sums<rows, keys / 8> scores;
        add_product_transposed(scores, q, own_row, k, lane);
        await_groups<0>();
        __syncthreads();  // the values are there, and nobody reads the keys any more
        if (n + 1 < blocks) {
            load_block(k, n + 1, 0);
        }
        bool const all_seen = block.seen_by(first + own_row) == keys;
#pragma unroll
        for (int m = 0; m < rows; ++m) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                std::int64_t const query = first + own_row + m * 16 + half * 8 + lane / 4;
                int const seen = block.seen_by(query);
                float most = largest[m][half];
#pragma unroll
                for (int c = 0; c < keys / 8; ++c) {
#pragma unroll
                    for (int e = half * 2; e < half * 2 + 2; ++e) {
                        auto& score = scores.tile[m][c].at[e];
                        if (!all_seen && c * 8 + column_in_tile(e, lane) >= seen) {
                            score = no_score;
                        }
                        most = fmaxf(most, score);
                    }
                }
                most = fmaxf(most, __shfl_xor_sync(all_lanes, most, 1));
                most = fmaxf(most, __shfl_xor_sync(all_lanes, most, 2));
                float const correction = exp2f((largest[m][half] - most) * heads.scale);
                float const shift = most * heads.scale;
                largest[m][half] = most;
                sum[m][half] *= correction;
#pragma unroll
                for (int c = 0; c < keys / 8; ++c) {
#pragma unroll
                    for (int e = half * 2; e < half * 2 + 2; ++e) {
                        auto& p = scores.tile[m][c].at[e];
                        p = exp2f(fmaf(p, heads.scale, -shift));
                        sum[m][half] += p;
                        if constexpr (Drops) {
                            p *= heads.factor(heads.element(b, h, query) + block.number + c * 8 + column_in_tile(e, lane));
                        }
                    }
                }
#pragma unroll
                for (int c = 0; c < Width / 8; ++c) {
                    out.tile[m][c].at[half * 2] *= correction;
                    out.tile[m][c].at[half * 2 + 1] *= correction;
                }
            }
        }
        add_weighted_rows(out, scores, v, lane);
    }
#pragma unroll
    for (int m = 0; m < rows; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float total = sum[m][half];
            total += __shfl_xor_sync(all_lanes, total, 1);
            total += __shfl_xor_sync(all_lanes, total, 2);
#pragma unroll
            for (int c = 0; c < Width / 8; ++c) {
                out.tile[m][c].at[half * 2] /= total;
                out.tile[m][c].at[half * 2 + 1] /= total;
            }
            std::int64_t const query = first + own_row + m * 16 + half * 8 + lane / 4;
            if (query < a.length && lane % 4 == 0) {
                a.log_sum_exp[(b * a.heads + h) * a.length + query] = fmaf(largest[m][half], heads.scale, log2f(total)) * natural_per_binary;
            }
        }
    }
    write_pairs(out, heads.of_width(a.output, b, h).from(first), own_row, a.length - first, width, lane,
                [](int, int, float x, float y) { return two_bfloat16(x, y); });
}

}  // namespace rheo::inline v0::cuda
