#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where the queries, keys and values of a head lie, for the kernels: a block of keys belongs to one slice of its sequence, and blocks count
// through the slices before and then the item's own.

#include <cmath>
#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>

#include "kernels/attention/attention.hpp"
#include "kernels/cuda/reduce.cuh"
#include "kernels/dropout/dropout.cuh"

namespace rheo::inline v0::cuda {

/// Rows of one head in a matrix that holds more: from one to the next it is `step` elements.
template <class T>
struct head_rows {
    T* first;
    std::int64_t step;

    __device__ head_rows from(std::int64_t row) const { return {first + row * step, step}; }
};

/// A block of keys: rows [first, first + count) of slice `slice` of the sequence.
struct key_block {
    std::int64_t slice;
    std::int64_t first;
    std::int64_t count;   ///< that there are, at most the rows of a block
    std::int64_t number;  ///< of its first key in the whole sequence
    bool own;             ///< of the item's own slice, whose keys not all queries see

    /// The keys of the block that the item's query i sees: 0 .. result - 1.
    __device__ int seen_by(std::int64_t i) const
    {
        std::int64_t const most = own && i + 1 - first < count ? i + 1 - first : count;
        return most < 0 ? 0 : static_cast<int>(most);
    }
};

/// What all heads of a launch have in common. Scores are in powers of two: q . k times `scale`.
template <class Arguments>
struct attention_heads {
    Arguments a;
    drop_rule drop;
    std::int64_t head_width;
    std::int64_t group;
    std::int64_t row;  ///< elements of a row of qkv
    std::int64_t kv_width;
    std::int64_t whole;
    std::int64_t all_heads;  ///< of the model
    float inverse_root;      ///< 1 / sqrt(head width)
    float scale;             ///< the same, times log2(e)

    explicit attention_heads(Arguments const& arguments)
        : a{arguments},
          drop{rule_of(a.drop)},
          head_width{a.width / a.heads},
          group{qkv_row{a}.group},
          row{qkv_row{a}.floats()},
          kv_width{qkv_row{a}.kv_width},
          whole{a.whole == 0 ? a.length : a.whole},
          all_heads{a.all_heads == 0 ? a.heads : a.all_heads},
          inverse_root{1.0F / std::sqrt(static_cast<float>(head_width))},
          scale{inverse_root * 1.44269504F}
    {
    }

    __host__ __device__ std::int64_t before() const { return a.before.count * a.length; }  ///< tokens of the slices before

    __device__ auto queries(std::int64_t b, std::int64_t h) const
    {
        return head_rows<std::remove_pointer_t<decltype(a.qkv)>>{a.qkv + b * a.length * row + h * head_width, row};
    }

    __device__ auto keys(std::int64_t b, std::int64_t kv_head, std::int64_t slice) const
    {
        auto const* const from = slice < a.before.count ? slice_before(slice) : a.qkv;
        return head_rows<std::remove_pointer_t<decltype(a.qkv)>>{from + b * a.length * row + a.width + kv_head * head_width, row};
    }
    __device__ auto values(std::int64_t b, std::int64_t kv_head, std::int64_t slice) const
    {
        auto result = keys(b, kv_head, slice);
        result.first += kv_width;
        return result;
    }
    /// Of a matrix [batch * length, width].
    template <class T>
    __device__ head_rows<T> of_width(T* matrix, std::int64_t b, std::int64_t h) const
    {
        return {matrix + b * a.length * a.width + h * head_width, a.width};
    }
    /// The number of the probability of the item's query i and key 0, from which keys count on.
    __device__ std::int64_t element(std::int64_t b, std::int64_t h, std::int64_t i) const
    {
        return ((b * all_heads + a.first_head + h) * whole + before() + i) * whole;
    }

    /// What the probability of that number is multiplied by.
    __device__ float factor(std::int64_t number) const
    {
        return random_word(drop.numbers(), static_cast<std::uint64_t>(number)) < drop.threshold ? 0.0F : drop.scale;
    }

    /// Blocks of keys of one whole slice.
    __host__ __device__ std::int64_t slice_blocks(std::int64_t rows) const { return (a.length + rows - 1) / rows; }
    /// Blocks of keys that the queries up to `last` (not counted) of the item see.
    __host__ __device__ std::int64_t seen_blocks(std::int64_t last, std::int64_t rows) const
    {
        return a.before.count * slice_blocks(rows) + (smaller(last, a.length) + rows - 1) / rows;
    }
    __device__ key_block block(std::int64_t number, std::int64_t rows) const
    {
        std::int64_t const slice = a.before.count == 0 ? 0 : smaller(number / slice_blocks(rows), a.before.count);  // a division is worth a branch
        std::int64_t const first = (number - slice * slice_blocks(rows)) * rows;
        return {.slice = slice, .first = first, .count = smaller(rows, a.length - first), .number = slice * a.length + first, .own = slice == a.before.count};
    }

private:
    __host__ __device__ static constexpr std::int64_t smaller(std::int64_t x, std::int64_t y) { return x < y ? x : y; }

    __device__ auto slice_before(std::int64_t slice) const { return a.before.of[static_cast<std::size_t>(slice)]; }
};

/// What the backward of a query's probabilities wants of it. Those who own queries leave it for those who own keys, [batch, heads, length].
struct alignas(8) query_numbers {
    float log_sum;  ///< of its scores: on tensor cores in powers of two, else of e
    float mean;     ///< of the gradient of its probabilities: dout . out
};

/// Of the item's query i. All lanes of the warp call it; zeros beyond the last query.
template <class Arguments>
__device__ query_numbers numbers_of_query(attention_heads<Arguments> const& heads, query_numbers* all, std::int64_t b, std::int64_t h, std::int64_t i, int lane)
{
    auto const& a = heads.a;
    if (i >= a.length) {
        return {};
    }
    auto const at = (b * a.length + i) * a.width + h * heads.head_width;
    float sum = 0;
    for (std::int64_t c = lane; c < heads.head_width; c += warp_size) {
        sum = fmaf(static_cast<float>(a.output_gradient[at + c]), static_cast<float>(a.output[at + c]), sum);
    }
    auto const number = (b * a.heads + h) * a.length + i;
    query_numbers const result{a.log_sum_exp[number], warp_reduce(sum)};
    if (lane == 0) {
        all[number] = result;
    }
    return result;
}

/// Where the gradients of a block of keys and of its values go. What slices behind have added comes first: the item's own take it over, those
/// before are added to.
template <class T>
struct key_gradient_place {
    head_rows<T> to;           ///< of the block's first key; its value is kv_width elements further
    head_rows<T const> added;  ///< to be added, or null

    __device__ float with_added(std::int64_t row, std::int64_t column, float value) const
    {
        return added.first == nullptr ? value : value + static_cast<float>(added.first[row * added.step + column]);
    }
    __device__ void put(std::int64_t row, std::int64_t column, float value) const
    {
        to.first[row * to.step + column] = static_cast<T>(with_added(row, column, value));
    }
};

template <class Arguments>
__device__ auto gradients_of_keys(attention_heads<Arguments> const& heads, std::int64_t b, std::int64_t kv_head, key_block const& block)
{
    auto const& a = heads.a;
    using T = std::remove_pointer_t<decltype(a.qkv_gradient)>;
    std::int64_t const pair = kv_head * heads.head_width;
    std::int64_t const step = 2 * heads.kv_width;
    std::int64_t const row = b * a.length + block.first;
    auto const* const later = a.kv_gradient_later;
    if (block.own) {
        return key_gradient_place<T>{{a.qkv_gradient + row * heads.row + a.width + pair, heads.row},
                                     {later == nullptr ? nullptr : later + row * step + pair, step}};
    }
    auto* const to = a.kv_gradient_before.of[static_cast<std::size_t>(block.slice)] + row * step + pair;
    return key_gradient_place<T>{{to, step}, {later == nullptr ? nullptr : to, step}};
}

}  // namespace rheo::inline v0::cuda
