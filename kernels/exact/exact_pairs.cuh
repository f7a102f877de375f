#pragma once
// SPDX-License-Identifier: Apache-2.0

// Runs of exact sums in pairs, 16 bytes, and what a block adds to them: alone, and beside other work of a launch.

#include <cstdint>

#include "kernels/cuda/exact.cuh"

namespace rheo::inline v0::cuda {

// A thread takes two neighbouring sums, 16 bytes, at a time, eight times over; a warp reads and writes without gaps.
inline constexpr int pair_threads = 256;
inline constexpr int pair_times = 8;
inline constexpr std::int64_t pairs_of_block = std::int64_t{pair_threads} * pair_times * 2;  ///< elements

struct alignas(16) [[gnu::may_alias]] two_sums {
    std::int64_t at[2];
};
struct alignas(8) [[gnu::may_alias]] two_floats {
    float at[2];
};
struct alignas(4) [[gnu::may_alias]] two_halves {
    bfloat16 at[2];
};

template <class T>
struct pair_of;
template <>
struct pair_of<std::int64_t> {
    using type = two_sums;
};
template <>
struct pair_of<float> {
    using type = two_floats;
};
template <>
struct pair_of<bfloat16> {
    using type = two_halves;
};

/// Whether runs of `count` elements from each pointer on can be read in whole pairs.
template <class... T>
bool in_pairs(std::int64_t count, T const*... from)
{
    return count % 2 == 0 && ((reinterpret_cast<std::uintptr_t>(from) % (2 * sizeof(T)) == 0) && ...);
}

/// Elements first and first + 1; beyond the run they are zero.
template <bool Whole, class T>
__device__ typename pair_of<T>::type load_pair(T const* run, std::int64_t count, std::int64_t first)
{
    typename pair_of<T>::type result{};
    if constexpr (Whole) {
        if (first < count) {
            result = *reinterpret_cast<typename pair_of<T>::type const*>(run + first);
        }
    } else {
        for (int e = 0; e < 2; ++e) {
            if (first + e < count) {
                result.at[e] = run[first + e];
            }
        }
    }
    return result;
}

template <bool Whole, class T>
__device__ void store_pair(T* run, std::int64_t count, std::int64_t first, typename pair_of<T>::type const& values)
{
    if constexpr (Whole) {
        if (first < count) {
            *reinterpret_cast<typename pair_of<T>::type*>(run + first) = values;
        }
    } else {
        for (int e = 0; e < 2; ++e) {
            if (first + e < count) {
                run[first + e] = values.at[e];
            }
        }
    }
}

/// The first element of the running thread's k-th pair in a block of that number.
__device__ inline std::int64_t pair_at(std::int64_t block, int k) { return ((block * pair_times + k) * pair_threads + threadIdx.x) * 2; }

/// Adds the block's part of a contribution.
template <bool Whole, class T>
__device__ void accumulate_block(std::int64_t block, std::int64_t count, T const* gradient, gradient_sum_of<dtype::i64> const& target)
{
    typename pair_of<T>::type g[pair_times];
    two_sums sums[pair_times];
    for (int k = 0; k < pair_times; ++k) {
        g[k] = load_pair<Whole>(gradient, count, pair_at(block, k));
        sums[k] = load_pair<Whole>(target.sums, count, pair_at(block, k));
    }
    exact_adder adder{target};
    for (int k = 0; k < pair_times; ++k) {
        for (int e = 0; e < 2; ++e) {
            sums[k].at[e] = adder.sum_with(sums[k].at[e], float(g[k].at[e]));  // beyond the run: zero, which says nothing
        }
        store_pair<Whole>(target.sums, count, pair_at(block, k), sums[k]);
    }
    adder.merge();
}

}  // namespace rheo::inline v0::cuda
