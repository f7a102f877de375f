#pragma once
// SPDX-License-Identifier: Apache-2.0

// The inner loops of the host kernels: each works on a run of floats in one thread. loops.cpp is compiled
// once per instruction set level, and the best table that the processor runs is chosen at start. Every level gives
// the same bits: sums have sixteen fixed lanes folded in one fixed order, nothing is contracted, and no
// mathematics library is called. Included by loops.cpp at all levels: so declarations only, no inline code.

#include <cstdint>

namespace rheo::inline v0::detail {

using count_t = std::int64_t;

struct stream_parts {
    std::uint32_t key[2];
    std::uint32_t high[2];
};

/// A mask of dropped elements: an element whose word is below the threshold becomes zero, others times scale.
struct drop_rule {
    std::uint32_t const* words;
    std::uint32_t threshold;
    float scale;
};

struct adamw_step {
    float multiplier, beta1, one_less_beta1, beta2, one_less_beta2, correction1, correction2, epsilon, decay, rate;
};

/// A product of a few rows, each of which has the same bits whatever rows are beside it.
struct row_product {
    count_t rows, depth, columns;
    float const* x;  // [rows, depth]
    count_t x_row;   // elements from row to row
    float const* w;  // [depth, columns] of product_in_rows, [columns, depth] of dots_in_rows
    count_t w_row;
    float* y;  // [rows, columns], not x
    count_t y_row;
};

struct loop_table {
    char const* level;
    // elementwise; outputs may be inputs
    void (*add)(count_t n, float const* a, float const* b, float* out);
    void (*add_gelu)(count_t n, float const* bias, float* x, float* activated);  // x += bias (or null); activated = gelu(x)
    void (*gelu)(count_t n, float const* x, float* y);
    void (*gelu_backward)(count_t n, float const* x, float const* dy, float* dx);
    void (*drop)(count_t n, float const* x, drop_rule const& rule, float* y);
    void (*add_dropped)(count_t n, float const* stream, float const* branch, drop_rule const& rule, float* out);
    // random words of whole strips of 64 elements
    void (*random_strips)(stream_parts const& stream, std::uint64_t first_strip, count_t strips, std::uint32_t* words);
    // rows
    float (*dot)(count_t n, float const* a, float const* b);
    void (*norm_forward)(count_t n, float epsilon, float const* x, float const* gamma, float const* beta, float* y, float* mean, float* rstd);
    void (*norm_backward)(count_t n, float const* x, float const* gamma, float mean, float rstd, float const* dy, float const* bypass, float* dx);
    void (*rms_forward)(count_t n, float epsilon, float const* x, float const* gamma, float* y, float* rstd);
    void (*rms_backward)(count_t n, float const* x, float const* gamma, float rstd, float const* dy, float const* bypass, float* dx);
    // a gate and what it lets through
    void (*swiglu)(count_t n, float const* gate, float const* value, float* y);
    void (*swiglu_backward)(count_t n, float const* gate, float const* value, float const* dy, float* dgate, float* dvalue);
    // pairs x[i], x[n + i] turned by n angles, and turned back; y may be x
    void (*turn)(count_t n, float const* cosines, float const* sines, float const* x, float* y);
    void (*turn_back)(count_t n, float const* cosines, float const* sines, float const* x, float* y);
    // y = x w, each element in the order of k; y = x w^T, each element as dot has it
    void (*product_in_rows)(row_product const& product);
    void (*dots_in_rows)(row_product const& product);
    // columns of a block of rows, n <= 64 of them side by side: out[c] = sum over rows
    void (*column_sums)(count_t rows, count_t n, count_t row_size, float const* dy, float* out);
    void (*norm_column_sums)(count_t rows, count_t n, count_t row_size, float const* x, float const* mean, float const* rstd, float const* dy, float* gamma,
                             float* beta);
    void (*rms_column_sums)(count_t rows, count_t n, count_t row_size, float const* x, float const* rstd, float const* dy, float* gamma);
    // softmax
    float (*softmax)(count_t n, float scale, float* scores);  // becomes probabilities; returns log sum exp
    void (*probabilities)(count_t n, float scale, float log_sum, float* scores);
    void (*score_gradient)(count_t n, float const* p, float mean, float scale, float* dp);  // dp = p (dp - mean) scale
    double (*log_sum_exp)(count_t n, float const* x);
    double (*sum_of_exp)(count_t n, float const* x, float* largest);                    // of exp(x - largest)
    double (*joined_log_sum_exp)(count_t n, double const* sums, float const* largest);  // of n parts of a row
    void (*exp_minus)(count_t n, float const* x, float shift, float* y);                // y = exp(x - shift)
    // exact sums
    std::uint32_t (*largest_magnitude)(count_t n, float const* g);  // the bits of the largest |g|; not-a-number is largest
    void (*add_fixed)(count_t n, float const* g, double scale, std::int64_t* sums);
    void (*add_integers)(count_t n, std::int64_t const* source, std::int64_t* target);
    void (*to_floats)(count_t n, std::int64_t const* sums, double scale, float* out);
    void (*add_fixed_32)(count_t n, float const* g, double scale, std::int32_t* sums);
    void (*add_integers_32)(count_t n, std::int32_t const* source, std::int32_t* target);
    void (*to_floats_32)(count_t n, std::int32_t const* sums, double scale, float* out);
    // the hashes of a digest, and their sum mod 2^128
    void (*digest)(std::uint64_t key, std::uint64_t first, count_t n, float const* values, std::uint64_t* high, std::uint64_t* low);
    // optimizer and initial values
    void (*adamw)(count_t n, adamw_step const& step, float const* gradient, float* m, float* v, float* master);
    double (*sum_of_squares)(count_t n, float const* g);
    void (*normal_values)(stream_parts const& stream, count_t first, count_t n, double mean, double deviation, float* out);
};

/// The table for this processor.
loop_table const& loops();
/// A level by name ("baseline", "v3", "v4"), or null when it is not built or the processor lacks it.
loop_table const* loops_of_level(char const* level);

}  // namespace rheo::inline v0::detail
