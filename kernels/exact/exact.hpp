#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where a weight gradient goes: into the sums of a tensor, which under the fp32 policy are exact (see
// rheo/tensor/exact_sum.hpp) and under the double policy of the tests are plain. Then the operations on
// whole exact accumulators: add a float gradient, add another's sums, turn sums into floats.

#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/tensor/exact_row_sum.hpp"
#include "rheo/tensor/exact_sum.hpp"

namespace rheo::inline v0 {

/// The sums of one gradient tensor, in plain floating point.
template <dtype Accumulate>
struct gradient_sum_of {
    element_t<Accumulate>* sums = nullptr;  // the tensor's shape
};

/// The sums of one gradient tensor, exact.
template <>
struct gradient_sum_of<dtype::i64> {
    std::int64_t* sums = nullptr;        // the tensor's shape
    accumulator_state* state = nullptr;  ///< scale in, size and flags out
    int contributions = 1;               ///< per step, over all ranks and uses: the bound depends on it
};

/// The sums of one gradient tensor, exact in 32 bits with a scale per row (rheo/tensor/exact_row_sum.hpp). A tensor of one dimension, as the weights of
/// norms and biases are, is one row.
template <>
struct gradient_sum_of<dtype::i32> {
    std::int32_t* sums = nullptr;     // [rows, width]
    row_sum_state* states = nullptr;  // [rows]
    std::int64_t width = 1;           ///< of a row
    int contributions = 1;            ///< per step, over all ranks and uses
};

/// The sums as a kernel sees them that adds to one row alone: a scale for the tensor serves every row.
constexpr gradient_sum_of<dtype::i64> at_row(gradient_sum_of<dtype::i64> const& target, std::int64_t) { return target; }
constexpr gradient_sum_of<dtype::i32> at_row(gradient_sum_of<dtype::i32> const& target, std::int64_t row)
{
    return {.sums = target.sums, .states = target.states + row, .width = target.width, .contributions = target.contributions};
}

template <dtype_policy Policy>
using gradient_sum = gradient_sum_of<Policy.accumulate>;

/// Adds the float gradient of one contribution to exact sums.
struct exact_accumulate_arguments {
    std::int64_t count;
    float const* gradient;               // [count]
    gradient_sum_of<dtype::i64> target;  // [count]
};

/// The same from a gradient that was stored in bfloat16.
struct exact_accumulate_bf16_arguments {
    std::int64_t count;
    bfloat16 const* gradient;            // [count]
    gradient_sum_of<dtype::i64> target;  // [count]
};

/// Adds exact sums to exact sums of the same scale; states are joined by `joined`.
struct exact_add_arguments {
    std::int64_t count;
    std::int64_t const* source;  // [count]
    std::int64_t* target;        // [count]
};

/// Turns exact sums into floats, as `value_of`.
struct exact_convert_arguments {
    std::int64_t count;
    std::int64_t const* sums;  // [count]
    int scale_log2;
    float* gradient;  // [count]
};

namespace definition {

/// One element's contribution enters its sum.
template <class Float>
constexpr void contribute(gradient_sum_of<dtype::i64> const& target, std::int64_t element, Float value)
{
    add_contribution(target.sums[element], *target.state, static_cast<float>(value), target.contributions);
}

template <class Float>
constexpr void contribute(gradient_sum_of<dtype::i32> const& target, std::int64_t element, Float value)
{
    add_contribution(target.sums[element], target.states[element / target.width], static_cast<float>(value), target.contributions);
}

template <dtype Accumulate, class Float>
constexpr void contribute(gradient_sum_of<Accumulate> const& target, std::int64_t element, Float value)
{
    target.sums[element] += static_cast<element_t<Accumulate>>(value);
}

inline void exact_accumulate(exact_accumulate_arguments const& a)
{
    for (std::int64_t i = 0; i < a.count; ++i) {
        contribute(a.target, i, a.gradient[i]);
    }
}

inline void exact_accumulate_bf16(exact_accumulate_bf16_arguments const& a)
{
    for (std::int64_t i = 0; i < a.count; ++i) {
        contribute(a.target, i, float{a.gradient[i]});
    }
}

inline void exact_add(exact_add_arguments const& a)
{
    for (std::int64_t i = 0; i < a.count; ++i) {
        a.target[i] += a.source[i];
    }
}

inline void exact_convert(exact_convert_arguments const& a)
{
    for (std::int64_t i = 0; i < a.count; ++i) {
        a.gradient[i] = value_of(a.sums[i], a.scale_log2);
    }
}

}  // namespace definition

class tile_pool;

namespace host {

void exact_accumulate(tile_pool& pool, exact_accumulate_arguments const& arguments);
void exact_add(tile_pool& pool, exact_add_arguments const& arguments);
void exact_convert(tile_pool& pool, exact_convert_arguments const& arguments);
void exact_zero(tile_pool& pool, std::int64_t count, std::int64_t* sums);

}  // namespace host

namespace cuda {

// Pointers are the device's, and results are there when the stream is.
void exact_accumulate(stream queue, exact_accumulate_arguments const& arguments);
void exact_accumulate_bf16(stream queue, exact_accumulate_bf16_arguments const& arguments);
void exact_add(stream queue, exact_add_arguments const& arguments);
void exact_convert(stream queue, exact_convert_arguments const& arguments);
void exact_zero(stream queue, std::int64_t count, std::int64_t* sums);

}  // namespace cuda
}  // namespace rheo::inline v0
