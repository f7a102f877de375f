// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set level: RHEO_LOOP_LEVEL names it. The loops are in the headers of loops/; here they
// become the level's table.
#include "kernels/detail/loops.hpp"

#include "kernels/detail/loops/columns.hpp"
#include "kernels/detail/loops/digest.hpp"
#include "kernels/detail/loops/elementwise.hpp"
#include "kernels/detail/loops/exact_sums.hpp"
#include "kernels/detail/loops/gelu.hpp"
#include "kernels/detail/loops/products.hpp"
#include "kernels/detail/loops/random.hpp"
#include "kernels/detail/loops/rows.hpp"
#include "kernels/detail/loops/softmax.hpp"
#include "kernels/detail/loops/swiglu.hpp"
#include "kernels/detail/loops/update.hpp"

namespace rheo::inline v0::detail {

#define RHEO_JOIN(a, b) a##b
#define RHEO_TABLE(level) RHEO_JOIN(loops_, level)
#define RHEO_TEXT(level) #level
#define RHEO_NAME(level) RHEO_TEXT(level)

extern loop_table const RHEO_TABLE(RHEO_LOOP_LEVEL);
loop_table const RHEO_TABLE(RHEO_LOOP_LEVEL){
    .level = RHEO_NAME(RHEO_LOOP_LEVEL),
    .add = add,
    .add_gelu = add_gelu,
    .gelu = gelu,
    .gelu_backward = gelu_backward,
    .drop = drop,
    .add_dropped = add_dropped,
    .random_strips = random_strips,
    .dot = dot,
    .norm_forward = norm_forward,
    .norm_backward = norm_backward,
    .rms_forward = rms_forward,
    .rms_backward = rms_backward,
    .swiglu = swiglu,
    .swiglu_backward = swiglu_backward,
    .turn = turn,
    .turn_back = turn_back,
    .product_in_rows = product_in_rows,
    .dots_in_rows = dots_in_rows,
    .column_sums = column_sums,
    .norm_column_sums = norm_column_sums,
    .rms_column_sums = rms_column_sums,
    .softmax = softmax,
    .probabilities = probabilities,
    .score_gradient = score_gradient,
    .log_sum_exp = log_sum_exp,
    .sum_of_exp = sum_of_exp,
    .joined_log_sum_exp = joined_log_sum_exp,
    .exp_minus = exp_minus,
    .largest_magnitude = largest_magnitude,
    .add_fixed = add_fixed,
    .add_integers = add_integers,
    .to_floats = to_floats,
    .add_fixed_32 = add_fixed,
    .add_integers_32 = add_integers,
    .to_floats_32 = to_floats,
    .digest = digest,
    .adamw = adamw,
    .sum_of_squares = sum_of_squares,
    .normal_values = normal_values,
};

}  // namespace rheo::inline v0::detail
