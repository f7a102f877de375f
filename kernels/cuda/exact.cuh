#pragma once
// SPDX-License-Identifier: Apache-2.0

// Contributions to exact sums from many threads at once. Each element belongs to one thread; largest size and flags meet in the accumulator's
// state by integer atomics, which add up the same in any order.

#include <bit>
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "kernels/cuda/reduce.cuh"
#include "kernels/exact/exact.hpp"

namespace rheo::inline v0::cuda {

/// One thread's part of one contribution to the sums of a tensor.
template <dtype Accumulate>
class exact_adder;
template <dtype Accumulate>
__device__ exact_adder(gradient_sum_of<Accumulate> const&) -> exact_adder<Accumulate>;

template <>
class exact_adder<dtype::i64> {
public:
    /// Sums that are null take nothing.
    __device__ explicit exact_adder(gradient_sum_of<dtype::i64> const& target) : target_{target}
    {
        if (target.sums != nullptr) {
            limit_ = overflow_threshold(target.state->scale_log2, target.contributions);
            scale_ = rheo::detail::power_of_two(target.state->scale_log2);
        }
    }

    /// As add_contribution: the sum with the value added, or as it was.
    __device__ std::int64_t sum_with(std::int64_t sum, float value)
    {
        auto const size = std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
        if (size >= 0x7f800000U) {
            flags_ |= not_finite;
            return sum;
        }
        largest_ = largest_ < size ? size : largest_;
        if (std::bit_cast<float>(size) >= limit_) {
            flags_ |= overflow;
            return sum;
        }
        return sum + rheo::detail::nearest_integer(static_cast<double>(value) * scale_);
    }

    __device__ void add(std::int64_t element, float value)
    {
        if (target_.sums != nullptr) {
            target_.sums[element] = sum_with(target_.sums[element], value);
        }
    }

    /// Ends the part; all lanes of the warp call it.
    __device__ void merge() const
    {
        if (target_.sums == nullptr) {
            return;
        }
        auto const largest = __reduce_max_sync(all_lanes, largest_);
        unsigned const flags =
            (__any_sync(all_lanes, flags_ & overflow) != 0 ? overflow : 0) | (__any_sync(all_lanes, flags_ & not_finite) != 0 ? not_finite : 0);
        if ((threadIdx.x + threadIdx.y * blockDim.x) % warp_size != 0) {
            return;
        }
        auto* const words = reinterpret_cast<unsigned*>(target_.state);
        if (largest > __ldcg(words + 1)) {  // mostly another warp has stored as much: then no warp waits for its turn
            atomicMax(words + 1, largest);  // sizes are not negative: their bits are in their order
        }
        if (flags != 0) {
            atomicOr(words + 2, flags);
        }
    }

private:
    static constexpr unsigned overflow = 1;
    static constexpr unsigned not_finite = 0x100;
    static_assert(sizeof(accumulator_state) == 12 && offsetof(accumulator_state, max_abs) == 4 && offsetof(accumulator_state, overflow) == 8 &&
                      offsetof(accumulator_state, not_finite) == 9 && sizeof(bool) == 1 && std::endian::native == std::endian::little,
                  "the flags of an accumulator are the first two bytes of its third word");

    gradient_sum_of<dtype::i64> target_;
    float limit_ = 0;
    double scale_ = 0;
    std::uint32_t largest_ = 0;
    unsigned flags_ = 0;
};

/// To the sums of one row, in 32 bits: the target's first; see at_row.
template <>
class exact_adder<dtype::i32> {
public:
    /// Sums that are null take nothing.
    __device__ explicit exact_adder(gradient_sum_of<dtype::i32> const& target) : target_{target}
    {
        if (target.sums != nullptr) {
            limit_ = std::bit_cast<std::uint32_t>(row_overflow_threshold(target.states->scale_log2, target.contributions));
            scale_ = rheo::detail::power_of_two(target.states->scale_log2);
        }
    }

    __device__ void add(std::int64_t element, float value)
    {
        if (target_.sums == nullptr) {
            return;
        }
        auto const bits = std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
        auto const size = bits < infinite ? bits : infinite;
        largest_ = largest_ < size ? size : largest_;
        if (size < limit_) {
            target_.sums[element] += static_cast<std::int32_t>(rheo::detail::nearest_integer(static_cast<double>(value) * scale_));
        }
    }

    /// Ends the part; all lanes of the warp call it, and add to the same row.
    __device__ void merge() const
    {
        if (target_.sums == nullptr) {
            return;
        }
        auto const largest = __reduce_max_sync(all_lanes, largest_);
        auto* const known = reinterpret_cast<unsigned*>(target_.states) + 1;
        if ((threadIdx.x + threadIdx.y * blockDim.x) % warp_size == 0 && largest > __ldcg(known)) {
            atomicMax(known, largest);
        }
    }

private:
    static constexpr std::uint32_t infinite = 0x7f800000U;
    static_assert(sizeof(row_sum_state) == 8 && offsetof(row_sum_state, max_abs) == 4);

    gradient_sum_of<dtype::i32> target_;
    std::uint32_t limit_ = 0;
    double scale_ = 0;
    std::uint32_t largest_ = 0;
};

}  // namespace rheo::inline v0::cuda
