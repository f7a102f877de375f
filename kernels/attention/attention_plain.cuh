#pragma once
// SPDX-License-Identifier: Apache-2.0

// Attention without tensor cores, for float and for heads that they do not take: a warp has one query (or one key) and its lanes have as many keys (or
// queries) of a tile in shared memory. All arithmetic is in float. Heads of up to 256 elements.

#include <limits>

#include "kernels/attention/attention_heads.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/vector.cuh"

namespace rheo::inline v0::cuda {

namespace plain {
inline constexpr int warps = 8;
inline constexpr int threads = warps * warp_size;
inline constexpr int tile = warp_size;  // rows of a tile, one per lane
inline constexpr std::int64_t most_width = 256;
inline constexpr int columns = most_width / warp_size;  // of a lane

constexpr std::size_t shared_bytes(std::int64_t width) { return sizeof(float) * static_cast<std::size_t>(2 * warps * width + 2 * tile * (width + 1)); }

/// Two matrices of which each warp has a row, and two tiles of `tile` rows; the odd step keeps the lanes of a column in different banks.
struct shared_tiles {
    float* own[2];
    float* tiles[2];
    int width;

    __device__ shared_tiles(float* memory, std::int64_t head_width)
        : own{memory, memory + warps * head_width},
          tiles{memory + 2 * warps * head_width, memory + 2 * warps * head_width + tile * (head_width + 1)},
          width{static_cast<int>(head_width)}
    {
    }

    __device__ int step() const { return width + 1; }

    /// Rows [0, count) of `from` by all threads of the block, zeros up to `rows`.
    template <class T>
    __device__ void fill(float* to, int to_step, int rows, head_rows<T> from, std::int64_t count, int thread) const
    {
        for (int i = thread; i < rows * width; i += threads) {
            int const row = i / width;
            int const column = i % width;
            to[row * to_step + column] = row < count ? static_cast<float>(from.first[row * from.step + column]) : 0.0F;
        }
    }

    __device__ float dot(float const* row, float const* other) const
    {
        float sum = 0;
        for (int c = 0; c < width; ++c) {
            sum = fmaf(row[c], other[c], sum);
        }
        return sum;
    }

    /// The two tiles come next, when no thread reads the last ones any more: rows [0, count) of each, and all threads see them.
    template <class T, class U>
    __device__ void next_tiles(head_rows<T> first, head_rows<U> second, std::int64_t count, int thread) const
    {
        __syncthreads();
        fill(tiles[0], step(), tile, first, count, thread);
        fill(tiles[1], step(), tile, second, count, thread);
        __syncthreads();
    }

    /// f(c, column) for each column of the lane, its c-th.
    template <class F>
    __device__ void each_column(int lane, F f) const
    {
#pragma unroll
        for (int c = 0; c < columns; ++c) {
            if (int const column = lane + c * warp_size; column < width) {
                f(c, column);
            }
        }
    }

    /// sums += weight of each lane times its row of a tile.
    __device__ void add_rows(float (&sums)[columns], float weight, float const* rows, int lane) const
    {
        for (int j = 0; j < tile; ++j) {
            float const w = __shfl_sync(all_lanes, weight, j);
            each_column(lane, [&](int c, int column) { sums[c] = fmaf(w, rows[j * step() + column], sums[c]); });
        }
    }
};
}  // namespace plain

// 6 blocks: with dropout the compiler would copy the loop and take half as many registers again.
template <class T, bool Drops, class Arguments>
__global__ void __launch_bounds__(plain::threads, Drops ? 6 : 0) attention_forward_plain(attention_heads<Arguments> const heads)
{
    using namespace plain;
    auto const& a = heads.a;
    int const thread = static_cast<int>(threadIdx.x);
    int const lane = thread % warp_size;
    int const warp = thread / warp_size;
    std::int64_t const first = static_cast<std::int64_t>(blockIdx.x) * warps;
    std::int64_t const query = first + warp;
    std::int64_t const h = blockIdx.y;
    std::int64_t const b = blockIdx.z;
    shared_tiles const shared{shared_memory<float>(), heads.head_width};
    shared.fill(shared.own[0], shared.width, warps, heads.queries(b, h).from(first), a.length - first, thread);
    float out[columns] = {};
    float largest = -std::numeric_limits<float>::infinity();
    float sum = 0;
    std::int64_t const blocks = heads.seen_blocks(first + warps, tile);
    for (std::int64_t n = 0; n < blocks; ++n) {
        auto const block = heads.block(n, tile);
        shared.next_tiles(heads.keys(b, h / heads.group, block.slice).from(block.first), heads.values(b, h / heads.group, block.slice).from(block.first),
                          block.count, thread);
        bool const seen = lane < block.seen_by(query);
        float const score =
            seen ? shared.dot(shared.own[0] + warp * shared.width, shared.tiles[0] + lane * shared.step()) : -std::numeric_limits<float>::infinity();
        float const most = fmaxf(largest, warp_reduce(score, ::cuda::maximum<>{}));
        float const correction = exp2f((largest - most) * heads.scale);
        float p = exp2f(fmaf(score, heads.scale, -most * heads.scale));
        largest = most;
        sum = fmaf(sum, correction, warp_reduce(p));
        if constexpr (Drops) {
            p *= heads.factor(heads.element(b, h, query) + block.number + lane);
        }
        for (float& o : out) {
            o *= correction;
        }
        shared.add_rows(out, p, shared.tiles[1], lane);
    }
    if (query >= a.length) {
        return;
    }
    if (lane == 0) {
        a.log_sum_exp[(b * a.heads + h) * a.length + query] = fmaf(largest, heads.inverse_root, logf(sum));
    }
    auto* const to = heads.of_width(a.output, b, h).from(query).first;
    shared.each_column(lane, [&](int c, int column) { to[column] = static_cast<T>(out[c] / sum); });
}

template <class T, bool Drops, class Arguments>
__global__ void __launch_bounds__(plain::threads) attention_backward_queries_plain(attention_heads<Arguments> const heads, query_numbers* numbers)
{
    using namespace plain;
    auto const& a = heads.a;
    int const thread = static_cast<int>(threadIdx.x);
    int const lane = thread % warp_size;
    int const warp = thread / warp_size;
    std::int64_t const first = static_cast<std::int64_t>(blockIdx.x) * warps;
    std::int64_t const query = first + warp;
    std::int64_t const h = blockIdx.y;
    std::int64_t const b = blockIdx.z;
    bool const inside = query < a.length;
    auto const [log_sum, mean] = numbers_of_query(heads, numbers, b, h, query, lane);
    shared_tiles const shared{shared_memory<float>(), heads.head_width};
    shared.fill(shared.own[0], shared.width, warps, heads.queries(b, h).from(first), a.length - first, thread);
    shared.fill(shared.own[1], shared.width, warps, heads.of_width(a.output_gradient, b, h).from(first), a.length - first, thread);
    float gradient[columns] = {};
    std::int64_t const blocks = heads.seen_blocks(first + warps, tile);
    for (std::int64_t n = 0; n < blocks; ++n) {
        auto const block = heads.block(n, tile);
        shared.next_tiles(heads.keys(b, h / heads.group, block.slice).from(block.first), heads.values(b, h / heads.group, block.slice).from(block.first),
                          block.count, thread);
        bool const seen = inside && lane < block.seen_by(query);
        float const score = shared.dot(shared.own[0] + warp * shared.width, shared.tiles[0] + lane * shared.step());
        float change = shared.dot(shared.own[1] + warp * shared.width, shared.tiles[1] + lane * shared.step());
        if constexpr (Drops) {
            change *= heads.factor(heads.element(b, h, query) + block.number + lane);
        }
        float const p = seen ? expf(fmaf(score, heads.inverse_root, -log_sum)) : 0.0F;
        shared.add_rows(gradient, p * (change - mean), shared.tiles[0], lane);
    }
    if (!inside) {
        return;
    }
    auto* const to = a.qkv_gradient + (b * a.length + query) * heads.row + h * heads.head_width;
    shared.each_column(lane, [&](int c, int column) { to[column] = static_cast<T>(gradient[c] * heads.inverse_root); });
}

template <class T, bool Drops, class Arguments>
__global__ void __launch_bounds__(plain::threads) attention_backward_keys_plain(attention_heads<Arguments> const heads, query_numbers const* numbers)
{
    using namespace plain;
    auto const& a = heads.a;
    int const thread = static_cast<int>(threadIdx.x);
    int const lane = thread % warp_size;
    int const warp = thread / warp_size;
    std::int64_t const kv_head = blockIdx.y;
    std::int64_t const b = blockIdx.z;
    auto const block = heads.block(blockIdx.x, warps);
    shared_tiles const shared{shared_memory<float>(), heads.head_width};
    shared.fill(shared.own[0], shared.width, warps, heads.keys(b, kv_head, block.slice).from(block.first), block.count, thread);
    shared.fill(shared.own[1], shared.width, warps, heads.values(b, kv_head, block.slice).from(block.first), block.count, thread);
    float key_gradient[columns] = {};
    float value_gradient[columns] = {};
    for (std::int64_t h = kv_head * heads.group; h < (kv_head + 1) * heads.group; ++h) {
        for (std::int64_t first = block.own ? block.first / tile * tile : 0; first < a.length; first += tile) {
            shared.next_tiles(heads.queries(b, h).from(first), heads.of_width(a.output_gradient, b, h).from(first), a.length - first, thread);
            std::int64_t const query = first + lane;
            bool const seen = query < a.length && warp < block.seen_by(query);
            auto const [log_sum, mean] = numbers[(b * a.heads + h) * a.length + (seen ? query : 0)];
            float const score = shared.dot(shared.own[0] + warp * shared.width, shared.tiles[0] + lane * shared.step());
            float const change = shared.dot(shared.own[1] + warp * shared.width, shared.tiles[1] + lane * shared.step());
            float const p = seen ? expf(fmaf(score, heads.inverse_root, -log_sum)) : 0.0F;
            float factor = 1.0F;
            if constexpr (Drops) {
                factor = heads.factor(heads.element(b, h, query) + block.number + warp);
            }
            shared.add_rows(value_gradient, p * factor, shared.tiles[1], lane);
            shared.add_rows(key_gradient, p * (change * factor - mean), shared.tiles[0], lane);
        }
    }
    if (warp >= block.count) {
        return;
    }
    auto const place = gradients_of_keys(heads, b, kv_head, block);
    shared.each_column(lane, [&](int c, int column) {
        place.put(warp, column, key_gradient[c] * heads.inverse_root);
        place.put(warp, column + heads.kv_width, value_gradient[c]);
    });
}

}  // namespace rheo::inline v0::cuda
