// SPDX-License-Identifier: Apache-2.0
// Products with independent rows (detail/loops/products.hpp).
#include "kernels/detail/tile_ranges.hpp"
#include "kernels/linear/linear.hpp"

namespace rheo::inline v0::host {

using namespace detail;

namespace {

// No grid of tiles changes a bit: these are for the caches, and so that a layer of usual width has more tiles than a processor has cores.
constexpr std::int64_t row_tile = 64;
constexpr std::int64_t column_tile = 128;

}  // namespace

void linear_forward_in_rows(tile_pool& pool, linear_forward_arguments<> const& a)
{
    bool const in_out = a.order == weight_order::in_out;
    std::int64_t const output_row = output_row_of(a);
    float* const to = a.partial != nullptr ? a.partial : a.output;
    std::int64_t const down = tiles_in(a.rows, row_tile);
    pool.run(down * tiles_in(a.out, column_tile), [&](std::int64_t t, int) {
        auto const rows = range_of(t % down, row_tile, a.rows);
        auto const columns = range_of(t / down, column_tile, a.out);
        float* const output = to + rows.begin * output_row + columns.begin;
        auto const multiply = in_out ? loops().product_in_rows : loops().dots_in_rows;
        multiply({.rows = rows.count,
                  .depth = a.in,
                  .columns = columns.count,
                  .x = a.input + rows.begin * a.in,
                  .x_row = a.in,
                  .w = a.weight + columns.begin * (in_out ? 1 : a.in),
                  .w_row = in_out ? a.out : a.in,
                  .y = output,
                  .y_row = output_row});
        float const* const bias = a.bias != nullptr ? a.bias + columns.begin : nullptr;
        for (std::int64_t r = 0; r < rows.count; ++r) {
            float* const row = output + r * output_row;
            if (a.activated != nullptr) {
                loops().add_gelu(columns.count, bias, row, a.activated + (row - to));
            } else if (bias != nullptr) {
                loops().add(columns.count, row, bias, row);
            }
        }
    });
}

}  // namespace rheo::inline v0::host
