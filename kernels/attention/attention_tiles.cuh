#pragma once
// SPDX-License-Identifier: Apache-2.0

// Attention in bfloat16 on tensor cores, after FlashAttention-2 (Dao, 2023): scores exist only as tiles in registers; forward keeps a running
// maximum and sum per query. Where we differ: the backward is two kernels, one that owns blocks of keys and one that owns blocks of queries, and
// each makes the scores again. That is seven products in place of five, and no sum depends on which block comes first. Heads of up to
// `Width` elements; what lies beyond the head's own is zero.

#include <type_traits>

#include "kernels/attention/attention_cores.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"

namespace rheo::inline v0::cuda {

inline constexpr float natural_per_binary = 0.693147181F;  // ln 2

/// `rows` tiles of each of `warps` warps; keys and values come in blocks of `keys`, `stages` of them at a time.
template <class Cores>
struct forward_tiles {
    static constexpr bool groups = std::is_same_v<Cores, of_warpgroups>;
    static constexpr int warps = groups ? 8 : 4;
    static constexpr int rows = groups ? 1 : 2;
    static constexpr int threads = warps * warp_size;
    static constexpr int queries = warps * rows * 16;
    static constexpr int keys = groups ? 128 : 64;
    static constexpr int stages = groups ? 2 : 1;
    template <int Width>
    static constexpr std::size_t shared_bytes = std::size_t{2} * Width * (queries + stages * 2 * keys);
};

/// At least as many blocks of threads at a time are to find room on a multiprocessor: two, where no more than some addresses give way for it.
template <class Cores, int Width, bool Drops>
inline constexpr int blocks_at_once = std::is_same_v<Cores, of_warpgroups> && Width == 64 && !Drops ? 2 : 1;

template <class Cores, int Width, bool Drops>
__global__ void __launch_bounds__(forward_tiles<Cores>::threads, blocks_at_once<Cores, Width, Drops>)
    attention_forward_tiles(attention_heads<attention_forward_arguments<bf16>> const heads)
{
    if constexpr (!Cores::compiled) {
        return;
    }
    using shape = forward_tiles<Cores>;
    constexpr int rows = shape::rows;
    constexpr int keys = shape::keys;
    constexpr int stages = shape::stages;
    auto const& a = heads.a;
    int const thread = static_cast<int>(threadIdx.x);
    int const lane = thread % warp_size;
    int const own_row = thread / warp_size * rows * 16;
    std::int64_t const first = static_cast<std::int64_t>(gridDim.x - 1 - blockIdx.x) * shape::queries;  // the longest first
    std::int64_t const h = blockIdx.y;
    std::int64_t const b = blockIdx.z;
    int const width = static_cast<int>(heads.head_width);
    auto* const memory = shared_memory<bfloat16>();
    using block_rows = typename Cores::template rows<keys, Width>;
    typename Cores::template rows<shape::queries, Width> const q{memory};
    auto const keys_of = [&](std::int64_t n) { return block_rows{memory + (shape::queries + n % stages * 2 * keys) * Width}; };
    auto const values_of = [&](std::int64_t n) { return block_rows{memory + (shape::queries + (n % stages * 2 + 1) * keys) * Width}; };

    /// Block n of keys into `to`, or of their values, which lie `offset` elements further.
    auto const load_block = [&](block_rows to, std::int64_t n, std::int64_t offset) {
        auto const block = heads.block(n, keys);
        auto const from = heads.keys(b, h / heads.group, block.slice).from(block.first);
        to.template fill<keys, shape::threads>(from.first + offset, from.step, block.count, width, thread);
        end_group();
    };
    auto const see_copies = [] {
        await_groups<0>();
        Cores::show_copies();
        __syncthreads();
    };

    auto const from = heads.queries(b, h).from(first);
    q.template fill<shape::queries, shape::threads>(from.first, from.step, a.length - first, width, thread);
    load_block(keys_of(0), 0, 0);
    if constexpr (stages == 2) {
        load_block(values_of(0), 0, heads.kv_width);
    }
    warp_sums<rows, Width / 8> out{};
    float largest[rows][2];
    float sum[rows][2] = {};
#pragma unroll
    for (int m = 0; m < rows; ++m) {
        largest[m][0] = largest[m][1] = no_score;
    }
    std::int64_t const blocks = heads.seen_blocks(first + shape::queries, keys);
    for (std::int64_t n = 0; n < blocks; ++n) {
        auto const block = heads.block(n, keys);
        see_copies();  // the keys are there, and no thread reads the last values any more
        if constexpr (stages == 1) {
            load_block(values_of(n), n, heads.kv_width);
        } else if (n + 1 < blocks) {
            load_block(keys_of(n + 1), n + 1, 0);
            load_block(values_of(n + 1), n + 1, heads.kv_width);
        }
        warp_sums<rows, keys / 8> scores;
        Cores::begin();
        set_product_transposed(scores, q, own_row, keys_of(n), lane);
        Cores::await(scores);
        if constexpr (stages == 1) {
            see_copies();  // the values are there, and no thread reads the keys any more
            if (n + 1 < blocks) {
                load_block(keys_of(n + 1), n + 1, 0);
            }
        }
        bool const all_seen = block.seen_by(first + own_row) == keys;
#pragma unroll
        for (int m = 0; m < rows; ++m) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                std::int64_t const query = first + own_row + m * 16 + half * 8 + lane / 4;
                if (!all_seen) {
                    int const seen = block.seen_by(query);
#pragma unroll
                    for (int c = 0; c < keys / 8; ++c) {
#pragma unroll
                        for (int e = half * 2; e < half * 2 + 2; ++e) {
                            auto& score = scores.tile[m][c].at[e];
                            score = c * 8 + column_in_tile(e, lane) < seen ? score : no_score;
                        }
                    }
                }
                float most = largest[m][half];
#pragma unroll
                for (int c = 0; c < keys / 8; ++c) {
                    most = fmaxf(most, fmaxf(scores.tile[m][c].at[half * 2], scores.tile[m][c].at[half * 2 + 1]));
                }
                most = fmaxf(most, __shfl_xor_sync(all_lanes, most, 1));
                most = fmaxf(most, __shfl_xor_sync(all_lanes, most, 2));
                float const correction = power_of_two((largest[m][half] - most) * heads.scale);
                float const shift = most * heads.scale;
                largest[m][half] = most;
                sum[m][half] *= correction;
#pragma unroll
                for (int c = 0; c < keys / 8; ++c) {
#pragma unroll
                    for (int e = half * 2; e < half * 2 + 2; ++e) {
                        auto& p = scores.tile[m][c].at[e];
                        p = power_of_two(fmaf(p, heads.scale, -shift));
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
        add_weighted_rows(out, scores, values_of(n), lane);
    }
#pragma unroll
    for (int m = 0; m < rows; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float total = sum[m][half];
            total += __shfl_xor_sync(all_lanes, total, 1);
            total += __shfl_xor_sync(all_lanes, total, 2);
            float const inverse = 1.0F / total;
#pragma unroll
            for (int c = 0; c < Width / 8; ++c) {
                out.tile[m][c].at[half * 2] *= inverse;
                out.tile[m][c].at[half * 2 + 1] *= inverse;
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
