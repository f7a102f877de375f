#pragma once
// SPDX-License-Identifier: Apache-2.0

// Exact sums in 32 bits with a scale per row, where memory binds: add a gradient, add another's sums, turn sums into floats, judge all rows
// of a tensor as one, choose the scales of the next step. What a row's sums are is in rheo/tensor/exact_row_sum.hpp.

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "kernels/exact/exact.hpp"

namespace rheo::inline v0 {

/// Adds the gradient of one contribution.
template <class T>
struct exact_rows_accumulate_arguments {
    std::int64_t rows;
    T const* gradient;                   // [rows, width], float or bfloat16
    gradient_sum_of<dtype::i32> target;  // [rows, width]
};

/// Adds sums of the same scales, and joins the states of the rows where the source has some.
struct exact_rows_add_arguments {
    std::int64_t rows;
    std::int32_t const* source;          // [rows, width]
    row_sum_state const* source_states;  // [rows] or null
    gradient_sum_of<dtype::i32> target;  // [rows, width]
};

/// Turns sums into floats, in their own place where gradient lies there.
struct exact_rows_convert_arguments {
    std::int64_t rows;
    gradient_sum_of<dtype::i32> source;  // [rows, width], only read
    float* gradient;                     // [rows, width], may be the sums
};

/// Joins what all rows say to the verdict on a tensor: the largest finite |g|, whether some row overflowed, whether some was not finite.
struct exact_rows_judge_arguments {
    std::int64_t rows;
    row_sum_state const* states;  // [rows]
    int contributions;
    accumulator_state* verdict;  // [1], its scale means nothing
};

/// Chooses each row's scale for the next step, and begins it; a row that is not finite keeps its own.
struct exact_rows_begin_arguments {
    std::int64_t rows;
    row_sum_state* states;  // [rows]
    int contributions;
};

namespace definition {

template <class T>
void exact_rows_accumulate(exact_rows_accumulate_arguments<T> const& a)
{
    for (std::int64_t i = 0; i < a.rows * a.target.width; ++i) {
        contribute(a.target, i, static_cast<float>(a.gradient[i]));
    }
}

inline void exact_rows_add(exact_rows_add_arguments const& a)
{
    for (std::int64_t i = 0; i < a.rows * a.target.width; ++i) {
        a.target.sums[i] += a.source[i];
    }
    for (std::int64_t r = 0; r < a.rows && a.source_states != nullptr; ++r) {
        a.target.states[r] = joined(a.target.states[r], a.source_states[r]);
    }
}

inline void exact_rows_convert(exact_rows_convert_arguments const& a)
{
    for (std::int64_t i = 0; i < a.rows * a.source.width; ++i) {
        a.gradient[i] = value_of(a.source.sums[i], a.source.states[i / a.source.width].scale_log2);
    }
}

inline void exact_rows_judge(exact_rows_judge_arguments const& a)
{
    for (std::int64_t r = 0; r < a.rows; ++r) {
        auto const& state = a.states[r];
        a.verdict->overflow = a.verdict->overflow || overflowed(state, a.contributions);
        a.verdict->not_finite = a.verdict->not_finite || not_finite(state);
        a.verdict->max_abs = not_finite(state) ? a.verdict->max_abs : std::max(a.verdict->max_abs, state.max_abs);
    }
}

inline void exact_rows_begin(exact_rows_begin_arguments const& a)
{
    for (std::int64_t r = 0; r < a.rows; ++r) {
        auto& state = a.states[r];
        state = {.scale_log2 = not_finite(state) ? state.scale_log2 : next_row_scale(state.max_abs, a.contributions, state.scale_log2)};
    }
}

}  // namespace definition

class tile_pool;

namespace host {

// What is a loop over states alone is its definition.
void exact_rows_add(tile_pool& pool, exact_rows_add_arguments const& arguments);
void exact_rows_convert(tile_pool& pool, exact_rows_convert_arguments const& arguments);

}  // namespace host

namespace cuda {

// Pointers are the device's, and results are there when the stream is.
void exact_rows_accumulate(stream queue, exact_rows_accumulate_arguments<float> const& arguments);
void exact_rows_accumulate(stream queue, exact_rows_accumulate_arguments<bfloat16> const& arguments);
void exact_rows_add(stream queue, exact_rows_add_arguments const& arguments);
void exact_rows_convert(stream queue, exact_rows_convert_arguments const& arguments);
void exact_rows_judge(stream queue, exact_rows_judge_arguments const& arguments);
void exact_rows_begin(stream queue, exact_rows_begin_arguments const& arguments);

}  // namespace cuda
}  // namespace rheo::inline v0
