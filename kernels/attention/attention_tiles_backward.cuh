#pragma once
// SPDX-License-Identifier: Apache-2.0

// The backward of attention_tiles.cuh: a kernel whose blocks own queries and add up their gradients, and one whose blocks own keys and add up
// those of keys and values, over the queries of all heads of their group. What a probability's row has in common, the first leaves for the second.

#include "kernels/attention/attention_tiles.cuh"

namespace rheo::inline v0::cuda {

using backward_heads = attention_heads<attention_backward_arguments<bf16>>;

namespace query_tiles {
inline constexpr int threads = 8 * warp_size;
inline constexpr int queries = 8 * 16;
inline constexpr int keys = 64;
inline constexpr int stages = 2;
template <int Width>
inline constexpr std::size_t shared_bytes = std::size_t{2} * Width * 2 * (queries + stages * keys);
}  // namespace query_tiles

/// The numbers of a warp's 16 queries from `first` on: a lane gets those of the rows in which its sums are, lane / 4 and 8 more. Beyond the last query they are
/// zeros. A row is Width / 8 lanes' chunks, and all rows are read at once. @param all [batch, heads, length], written
template <int Width>
__device__ void numbers_of_queries(backward_heads const& heads, query_numbers* all, std::int64_t b, std::int64_t h, std::int64_t first, int lane,
                                   float (&log_sum)[2], float (&mean)[2])
{
    constexpr int lanes = Width / 8;  // of a row
    constexpr int at_once = warp_size / lanes;
    constexpr int passes = 16 / at_once;
    auto const& a = heads.a;
    chunk<bfloat16> out[passes];
    chunk<bfloat16> dout[passes];
    float log_sums[passes];
#pragma unroll
    for (int p = 0; p < passes; ++p) {
        std::int64_t const query = first + p * at_once + lane / lanes;
        std::int64_t const row = query < a.length ? query : 0;
        std::int64_t const width = query < a.length ? heads.head_width : 0;  // beyond it are zeros
        out[p] = load<true>(heads.of_width(a.output, b, h).from(row).first, width, lane % lanes);
        dout[p] = load<true>(heads.of_width(a.output_gradient, b, h).from(row).first, width, lane % lanes);
        log_sums[p] = query < a.length ? a.log_sum_exp[(b * a.heads + h) * a.length + row] : 0.0F;
    }
#pragma unroll
    for (int p = 0; p < passes; ++p) {
        query_numbers own{log_sums[p] / natural_per_binary, 0.0F};
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            own.mean = fmaf(dout[p].at(e), out[p].at(e), own.mean);
        }
#pragma unroll
        for (int half = lanes / 2; half > 0; half /= 2) {  // every lane of the row gets it
            own.mean += __shfl_xor_sync(all_lanes, own.mean, half);
        }
        if (std::int64_t const query = first + p * at_once + lane / lanes; lane % lanes == 0 && query < a.length) {
            all[(b * a.heads + h) * a.length + query] = own;
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            int const row = lane / 4 + half * 8;
            float const log_sum_there = __shfl_sync(all_lanes, own.log_sum, row % at_once * lanes);
            float const mean_there = __shfl_sync(all_lanes, own.mean, row % at_once * lanes);
            log_sum[half] = row / at_once == p ? log_sum_there : log_sum[half];
            mean[half] = row / at_once == p ? mean_there : mean[half];
        }
    }
}

/// The gradients of a block of queries, over all keys that they see. `numbers` is [batch, heads, length].
template <class Cores, int Width, bool Drops>
__global__ void __launch_bounds__(query_tiles::threads, blocks_at_once<Cores, Width, Drops>)
    attention_backward_queries(backward_heads const heads, query_numbers* numbers)
{
    if constexpr (!Cores::compiled) {
        return;
    }
    using namespace query_tiles;
    auto const& a = heads.a;
    int const thread = static_cast<int>(threadIdx.x);
    int const lane = thread % warp_size;
    int const own_row = thread / warp_size * 16;
    std::int64_t const first = static_cast<std::int64_t>(gridDim.x - 1 - blockIdx.x) * queries;  // the longest first
    std::int64_t const h = blockIdx.y;
    std::int64_t const b = blockIdx.z;
    int const width = static_cast<int>(heads.head_width);
    auto* const memory = shared_memory<bfloat16>();
    typename Cores::template rows<queries, Width> const q{memory};
    typename Cores::template rows<queries, Width> const dout{memory + queries * Width};
    auto const stage = [&](std::int64_t n, int which) {
        return typename Cores::template rows<keys, Width>{memory + (2 * queries + (n % stages * 2 + which) * keys) * Width};
    };
    auto const load_block = [&](std::int64_t n) {
        auto const block = heads.block(n, keys);
        auto const k = heads.keys(b, h / heads.group, block.slice).from(block.first);
        auto const v = heads.values(b, h / heads.group, block.slice).from(block.first);
        stage(n, 0).template fill<keys, threads>(k.first, k.step, block.count, width, thread);
        stage(n, 1).template fill<keys, threads>(v.first, v.step, block.count, width, thread);
        end_group();
    };

    auto const queries_at = heads.queries(b, h).from(first);
    auto const gradients_at = heads.of_width(a.output_gradient, b, h).from(first);
    q.template fill<queries, threads>(queries_at.first, queries_at.step, a.length - first, width, thread);
    dout.template fill<queries, threads>(gradients_at.first, gradients_at.step, a.length - first, width, thread);
    load_block(0);
    float log_sum[2] = {};
    float mean[2] = {};
    numbers_of_queries<Width>(heads, numbers, b, h, first + own_row, lane, log_sum, mean);
    warp_sums<1, Width / 8> gradient{};
    std::int64_t const blocks = heads.seen_blocks(first + queries, keys);
    for (std::int64_t n = 0; n < blocks; ++n) {
        await_groups<0>();
        Cores::show_copies();
        __syncthreads();  // this block is there, and no thread reads the one before any more
        if (n + 1 < blocks) {
            load_block(n + 1);
        }
        auto const block = heads.block(n, keys);
        warp_sums<1, keys / 8> scores;
        warp_sums<1, keys / 8> changes;
        Cores::begin();
        set_product_transposed(scores, q, own_row, stage(n, 0), lane);
        set_product_transposed(changes, dout, own_row, stage(n, 1), lane);
        Cores::await(scores, changes);
        if (block.seen_by(first + own_row) < keys) {
            int const seen[2] = {block.seen_by(first + own_row + lane / 4), block.seen_by(first + own_row + 8 + lane / 4)};
#pragma unroll
            for (int c = 0; c < keys / 8; ++c) {
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    auto& score = scores.tile[0][c].at[e];
                    score = c * 8 + column_in_tile(e, lane) < seen[e / 2] ? score : no_score;
                }
            }
        }
#pragma unroll
        for (int c = 0; c < keys / 8; ++c) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                float const p = power_of_two(fmaf(scores.tile[0][c].at[e], heads.scale, -log_sum[e / 2]));
                float change = changes.tile[0][c].at[e];
                if constexpr (Drops) {
                    int const key = c * 8 + column_in_tile(e, lane);
                    change *= heads.factor(heads.element(b, h, first + own_row + row_in_tile(e, lane)) + block.number + key);
                }
                scores.tile[0][c].at[e] = p * (change - mean[e / 2]);
            }
        }
        add_weighted_rows(gradient, scores, stage(n, 0), lane);
    }
    head_rows<bfloat16> const to{a.qkv_gradient + (b * a.length + first) * heads.row + h * heads.head_width, heads.row};
    write_pairs(gradient, to, own_row, a.length - first, width, lane,
                [&](int, int, float x, float y) { return two_bfloat16(x * heads.inverse_root, y * heads.inverse_root); });
}

namespace key_tiles {
inline constexpr int threads = 8 * warp_size;
inline constexpr int keys = 8 * 16;
inline constexpr int queries = 64;
inline constexpr int stages = 2;
template <int Width>
inline constexpr std::size_t shared_bytes = std::size_t{2} * Width * 2 * (keys + stages * queries) + sizeof(query_numbers[stages * queries]);
}  // namespace key_tiles

/// The gradients of a block of keys and its values, over all queries that see them, of all heads of the group.
template <class Cores, int Width, bool Drops>
__global__ void __launch_bounds__(key_tiles::threads) attention_backward_keys(backward_heads const heads, query_numbers const* numbers)
{
    if constexpr (!Cores::compiled) {
        return;
    }
    using namespace key_tiles;
    auto const& a = heads.a;
    int const thread = static_cast<int>(threadIdx.x);
    int const lane = thread % warp_size;
    int const own_row = thread / warp_size * 16;
    std::int64_t const kv_head = blockIdx.y;
    std::int64_t const b = blockIdx.z;
    int const width = static_cast<int>(heads.head_width);
    auto const block = heads.block(blockIdx.x, keys);
    auto* const memory = shared_memory<bfloat16>();
    typename Cores::template rows<keys, Width> const k{memory};
    typename Cores::template rows<keys, Width> const v{memory + keys * Width};
    auto const stage = [&](int n, int which) {
        return typename Cores::template rows<queries, Width>{memory + (2 * keys + (n % stages * 2 + which) * queries) * Width};
    };
    auto* const numbers_of_stages = reinterpret_cast<query_numbers*>(memory + 2 * (keys + stages * queries) * Width);

    // Blocks of queries of one head after the other; the first that sees a key of this block begins.
    int const begin = block.own ? static_cast<int>(block.first / queries) : 0;
    int const each = static_cast<int>((a.length + queries - 1) / queries) - begin;
    int const tiles = each * static_cast<int>(heads.group);
    auto const head_of = [&](int n) { return kv_head * heads.group + n / each; };
    auto const query_of = [&](int n) { return static_cast<std::int64_t>(begin + n % each) * queries; };
    auto const load_queries = [&](int n) {
        std::int64_t const h = head_of(n);
        std::int64_t const first = query_of(n);
        auto const q = heads.queries(b, h).from(first);
        auto const dout = heads.of_width(a.output_gradient, b, h).from(first);
        stage(n, 0).template fill<queries, threads>(q.first, q.step, a.length - first, width, thread);
        stage(n, 1).template fill<queries, threads>(dout.first, dout.step, a.length - first, width, thread);
        if (thread < queries) {
            bool const inside = first + thread < a.length;
            begin_copy<sizeof(query_numbers)>(numbers_of_stages + n % stages * queries + thread,
                                              numbers + (b * a.heads + h) * a.length + (inside ? first + thread : 0), inside);
        }
        end_group();
    };

    auto const keys_at = heads.keys(b, kv_head, block.slice).from(block.first);
    auto const values_at = heads.values(b, kv_head, block.slice).from(block.first);
    k.template fill<keys, threads>(keys_at.first, keys_at.step, block.count, width, thread);
    v.template fill<keys, threads>(values_at.first, values_at.step, block.count, width, thread);
    load_queries(0);
    warp_sums<1, Width / 8> key_gradient{};
    warp_sums<1, Width / 8> value_gradient{};
    for (int n = 0; n < tiles; ++n) {
        await_groups<0>();
        Cores::show_copies();
        __syncthreads();  // these queries are there, and no thread reads those before any more
        if (n + 1 < tiles) {
            load_queries(n + 1);
        }
        std::int64_t const first = query_of(n);
        auto const* const of_queries = numbers_of_stages + n % stages * queries;
        warp_sums<1, queries / 8> weights;  // probabilities, as rows of keys
        warp_sums<1, queries / 8> changes;
        Cores::begin();
        set_product_transposed(weights, k, own_row, stage(n, 0), lane);
        set_product_transposed(changes, v, own_row, stage(n, 1), lane);
        Cores::await(weights, changes);
        // Of these queries [from, end) see a key.
        int const end = static_cast<int>(a.length - first < queries ? a.length - first : queries);
        auto const from = [&](int row) {
            return own_row + row >= block.count ? queries : block.own ? static_cast<int>(block.first - first) + own_row + row : 0;
        };
        if (end < queries || from(15) > 0) {
            int const begins[2] = {from(lane / 4), from(lane / 4 + 8)};
#pragma unroll
            for (int c = 0; c < queries / 8; ++c) {
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    int const column = c * 8 + column_in_tile(e, lane);
                    auto& weight = weights.tile[0][c].at[e];
                    weight = column >= begins[e / 2] && column < end ? weight : no_score;
                }
            }
        }
#pragma unroll
        for (int c = 0; c < queries / 8; ++c) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                int const column = c * 8 + column_in_tile(e, lane);
                float& weight = weights.tile[0][c].at[e];
                float& change = changes.tile[0][c].at[e];
                auto const [log_sum, mean] = of_queries[column];
                float const p = power_of_two(fmaf(weight, heads.scale, -log_sum));
                float factor = 1.0F;
                if constexpr (Drops) {
                    factor = heads.factor(heads.element(b, head_of(n), first + column) + block.number + own_row + row_in_tile(e, lane));
                }
                weight = p * factor;
                change = p * (change * factor - mean);
            }
        }
        add_weighted_rows(value_gradient, weights, stage(n, 1), lane);
        add_weighted_rows(key_gradient, changes, stage(n, 0), lane);
    }

    auto const place = gradients_of_keys(heads, b, kv_head, block);
    auto const write = [&](warp_sums<1, Width / 8> const& sums, std::int64_t offset, float factor) {
        write_pairs(sums, {place.to.first + offset, place.to.step}, own_row, block.count, width, lane, [&](int row, int column, float x, float y) {
            return two_bfloat16(place.with_added(row, offset + column, x * factor), place.with_added(row, offset + column + 1, y * factor));
        });
    };
    write(key_gradient, 0, heads.inverse_root);
    write(value_gradient, heads.kv_width, 1.0F);
}

}  // namespace rheo::inline v0::cuda
