// SPDX-License-Identifier: Apache-2.0
// Products of fixed tiles by sgemm, with what follows done while the tile is in cache.
#include "kernels/linear/linear.hpp"

#include "kernels/blas.hpp"
#include "kernels/detail/tile_ranges.hpp"

namespace rheo::inline v0::host {

using namespace detail;

namespace {

struct tile_box {
    element_range rows;
    element_range columns;
};

/// Calls f(box, worker) for every tile of a [rows, columns] result, columns outermost: tiles of the same columns
/// read the same weights.
template <class F>
void for_tiles(tile_pool& pool, tile_grid const& grid, std::int64_t rows, std::int64_t columns, F&& f)
{
    std::int64_t const down = tiles_in(rows, grid.rows);
    pool.run(down * tiles_in(columns, grid.columns), [&](std::int64_t t, int worker) {
        f(tile_box{.rows = range_of(t % down, grid.rows, rows), .columns = range_of(t / down, grid.columns, columns)}, worker);
    });
}

/// One tile of the weight gradient, as it is stored: input^T dy, or dy^T input.
template <dtype_policy Policy>
sgemm_arguments weight_product(linear_backward_weight_arguments<Policy> const& a, tile_box const& box)
{
    bool const in_out = a.order == weight_order::in_out;
    std::int64_t const gradient_row = gradient_row_of(a);
    float const* left = in_out ? a.input : a.output_gradient;
    float const* right = in_out ? a.output_gradient : a.input;
    return {.m = box.rows.count,
            .n = box.columns.count,
            .k = a.rows,
            .a_is = transposed::yes,
            .a = left + box.rows.begin,
            .a_row = in_out ? a.in : gradient_row,
            .b = right + box.columns.begin,
            .b_row = in_out ? gradient_row : a.in,
            .c = nullptr,
            .c_row = 0};
}

}  // namespace

void linear_forward(tile_pool& pool, linear_forward_arguments<> const& a)
{
    bool const in_out = a.order == weight_order::in_out;
    std::int64_t const output_row = output_row_of(a);
    float* const to = a.partial != nullptr ? a.partial : a.output;
    for_tiles(pool, product_tiles, a.rows, a.out, [&](tile_box const& box, int) {
        float* const output = to + box.rows.begin * output_row + box.columns.begin;
        sgemm({.m = box.rows.count,
               .n = box.columns.count,
               .k = a.in,
               .b_is = in_out ? transposed::no : transposed::yes,
               .a = a.input + box.rows.begin * a.in,
               .a_row = a.in,
               .b = a.weight + box.columns.begin * (in_out ? 1 : a.in),
               .b_row = in_out ? a.out : a.in,
               .c = output,
               .c_row = output_row});
        float const* const bias = a.bias != nullptr ? a.bias + box.columns.begin : nullptr;
        for (std::int64_t r = 0; r < box.rows.count; ++r) {
            float* const row = output + r * output_row;
            if (a.activated != nullptr) {
                loops().add_gelu(box.columns.count, bias, row, a.activated + (row - to));
            } else if (bias != nullptr) {
                loops().add(box.columns.count, row, bias, row);
            }
        }
    });
}

void linear_backward_input(tile_pool& pool, linear_backward_input_arguments<> const& a)
{
    bool const in_out = a.order == weight_order::in_out;
    std::int64_t const gradient_row = gradient_row_of(a);
    expect_one_result(a);
    float* const to = a.partial != nullptr ? a.partial : a.input_gradient;
    for_tiles(pool, product_tiles, a.rows, a.in, [&](tile_box const& box, int) {
        float* const tile = to + box.rows.begin * a.in + box.columns.begin;
        sgemm({.m = box.rows.count,
               .n = box.columns.count,
               .k = a.out,
               .b_is = in_out ? transposed::yes : transposed::no,
               .a = a.output_gradient + box.rows.begin * gradient_row,
               .a_row = gradient_row,
               .b = a.weight + box.columns.begin * (in_out ? a.out : 1),
               .b_row = in_out ? a.out : a.in,
               .beta = a.accumulate ? 1.0F : 0.0F,
               .c = tile,
               .c_row = a.in});
        for (std::int64_t r = 0; a.pre_activation != nullptr && r < box.rows.count; ++r) {
            float* const row = tile + r * a.in;
            loops().gelu_backward(box.columns.count, a.pre_activation + (row - to), row, row);
        }
    });
}

template <dtype_policy Policy>
void linear_backward_weight_of(tile_pool& pool, linear_backward_weight_arguments<Policy> const& a)
{
    bool const in_out = a.order == weight_order::in_out;
    std::int64_t const columns = in_out ? a.out : a.in;
    std::mutex mutex;
    for_tiles(pool, weight_gradient_tiles, in_out ? a.in : a.out, columns, [&](tile_box const& box, int worker) {
        float* const tile = pool.scratch_of<float>(worker, box.rows.count * box.columns.count, product_slot);
        auto product = weight_product(a, box);
        product.c = tile;
        product.c_row = box.columns.count;
        sgemm(product);
        exact_run run{a.weight_gradient};
        for (std::int64_t r = 0; r < box.rows.count; ++r) {
            run.add((box.rows.begin + r) * columns + box.columns.begin, tile + r * box.columns.count, box.columns.count);
        }
        run.merge(mutex);
    });
}

void linear_backward_weight(tile_pool& pool, linear_backward_weight_arguments<fp32_inexact> const& a)
{
    bool const in_out = a.order == weight_order::in_out;
    std::int64_t const columns = in_out ? a.out : a.in;
    for_tiles(pool, weight_gradient_tiles, in_out ? a.in : a.out, columns, [&](tile_box const& box, int) {
        auto product = weight_product(a, box);
        product.beta = 1;
        product.c = a.weight_gradient.sums + box.rows.begin * columns + box.columns.begin;
        product.c_row = columns;
        sgemm(product);
    });
}

template <dtype_policy Policy>
void linear_backward_bias_of(tile_pool& pool, linear_backward_bias_arguments<Policy> const& a)
{
    std::mutex mutex;
    pool.run(tiles_in(a.out, 64), [&](std::int64_t t, int) {
        auto const columns = range_of(t, 64, a.out);
        float sums[64];
        loops().column_sums(a.rows, columns.count, gradient_row_of(a), a.output_gradient + columns.begin, sums);
        exact_run run{a.bias_gradient};
        run.add(columns.begin, sums, columns.count);
        run.merge(mutex);
    });
}

void linear_backward_weight(tile_pool& pool, linear_backward_weight_arguments<> const& a) { linear_backward_weight_of(pool, a); }
void linear_backward_weight(tile_pool& pool, linear_backward_weight_arguments<fp32_i32> const& a) { linear_backward_weight_of(pool, a); }

void linear_backward_bias(tile_pool& pool, linear_backward_bias_arguments<> const& a) { linear_backward_bias_of(pool, a); }
void linear_backward_bias(tile_pool& pool, linear_backward_bias_arguments<fp32_i32> const& a) { linear_backward_bias_of(pool, a); }

}  // namespace rheo::inline v0::host
