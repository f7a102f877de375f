#pragma once
// SPDX-License-Identifier: Apache-2.0

// Dropout of the elements that a thread holds: the mask is drawn into the bits of one word before they are used, so that the
// rounds of Philox stand in the code once, and not at all in the way when nothing is dropped.

#include "kernels/cuda/rows.cuh"
#include "kernels/dropout/dropout.hpp"

namespace rheo::inline v0::cuda {

/// A dropout made ready for the device. A launch that is recorded and done again for other keys finds the stream of its key in memory.
struct drop_rule {
    random_stream made;
    random_stream const* kept;
    row_part rows;
    std::uint32_t threshold;
    float scale;

    __device__ random_stream numbers() const { return kept == nullptr ? made : *kept; }
};

inline drop_rule rule_of(dropout const& drop)
{
    return {.made = drop.stream == nullptr ? stream_of(drop.key) : random_stream{},
            .kept = drop.stream,
            .rows = drop.rows,
            .threshold = dropout_threshold(drop),
            .scale = dropout_scale<float>(drop)};
}

/// Which of a thread's elements of a row are dropped.
template <class T>
class drop_mask {
public:
    __device__ drop_mask(drop_rule const& rule, row_place const& place) : scale_{rule.threshold == 0 ? 1.0F : rule.scale}
    {
        if (rule.threshold == 0 || place.width == 0) {
            return;
        }
        auto const numbers = rule.numbers();
        std::int64_t const first = rule.rows(place.row) * place.width;
        for (int i = 0; i < items_per_thread * chunk_size<T>; ++i) {
            std::int64_t const column = place.chunk(i / chunk_size<T>) * chunk_size<T> + i % chunk_size<T>;
            bool const drops = column < place.width && random_word(numbers, static_cast<std::uint64_t>(first + column)) < rule.threshold;
            dropped_ |= static_cast<std::uint32_t>(drops) << i;
        }
    }

    /// What element e of the k-th chunk is multiplied by: 0 or 1 / (1 - p).
    __device__ float factor(int k, int e) const { return (dropped_ >> (k * chunk_size<T> + e) & 1U) != 0 ? 0.0F : scale_; }

private:
    static_assert(items_per_thread * chunk_size<T> <= 32, "a thread's mask is one word");
    std::uint32_t dropped_ = 0;
    float scale_;
};

/// The sum of stream and dropped branch, each rounded as storing would.
template <class T>
__device__ chunk<T> residual_of(chunk<T> const& stream, chunk<T> const& branch, drop_mask<T> const& mask, int k)
{
    float sum[chunk_size<T>];
    for (int e = 0; e < chunk_size<T>; ++e) {
        sum[e] = stream.at(e) + rounded<T>(branch.at(e) * mask.factor(k, e));
    }
    return packed<T>(sum);
}

/// The gradient of the branch.
template <class T>
__device__ chunk<T> dropped_of(chunk<T> const& gradient, drop_mask<T> const& mask, int k)
{
    float result[chunk_size<T>];
    for (int e = 0; e < chunk_size<T>; ++e) {
        result[e] = gradient.at(e) * mask.factor(k, e);
    }
    return packed<T>(result);
}

}  // namespace rheo::inline v0::cuda
