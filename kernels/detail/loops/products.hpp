#pragma once
// SPDX-License-Identifier: Apache-2.0

// Products whose rows have the same bits whatever rows are beside them: the order in which an element is summed does not depend on the number of rows.
// Weights are read once for four rows, so few rows take the time that reading the weights takes.

#include "kernels/detail/loops/lanes.hpp"

namespace rheo::inline v0::detail {
namespace {

constexpr count_t depth_block = 16;  // weight rows whose columns are added to sums in registers

/// y[r, c] += x[r, k] w[k, c] over a block of k, ascending, of `Rows` rows and all columns. At the first block y begins with zero.
template <int Rows>
RHEO_INLINE void add_weight_rows(row_product const& p, count_t row, count_t first, count_t depth)
{
    float const* const x = p.x + row * p.x_row + first;
    float const* const w = p.w + first * p.w_row;
    float* const y = p.y + row * p.y_row;
    bool const begins = first == 0;
    count_t c = 0;
    for (; c + 2 * width <= p.columns; c += 2 * width) {
        lanes sums[Rows][2];
        for (int r = 0; r < Rows; ++r) {
            sums[r][0] = begins ? lanes{} : load(y + r * p.y_row + c);
            sums[r][1] = begins ? lanes{} : load(y + r * p.y_row + c + width);
        }
        for (count_t k = 0; k < depth; ++k) {
            lanes const w0 = load(w + k * p.w_row + c);
            lanes const w1 = load(w + k * p.w_row + c + width);
            for (int r = 0; r < Rows; ++r) {
                lanes const factor = all(x[r * p.x_row + k]);
                sums[r][0] += factor * w0;
                sums[r][1] += factor * w1;
            }
        }
        for (int r = 0; r < Rows; ++r) {
            store(y + r * p.y_row + c, sums[r][0]);
            store(y + r * p.y_row + c + width, sums[r][1]);
        }
    }
    for (; c < p.columns; c += width) {
        count_t const n = p.columns - c < width ? p.columns - c : width;
        for (int r = 0; r < Rows; ++r) {
            lanes sum = begins ? lanes{} : load_part(y + r * p.y_row + c, n, 0);
            for (count_t k = 0; k < depth; ++k) {
                sum += all(x[r * p.x_row + k]) * load_part(w + k * p.w_row + c, n, 0);
            }
            store_part(y + r * p.y_row + c, n, sum);
        }
    }
}

void product_in_rows(row_product const& p)
{
    for (count_t k = 0; k < p.depth; k += depth_block) {
        count_t const depth = p.depth - k < depth_block ? p.depth - k : depth_block;
        count_t r = 0;
        for (; r + 4 <= p.rows; r += 4) {
            add_weight_rows<4>(p, r, k, depth);
        }
        switch (p.rows - r) {
        case 3: add_weight_rows<3>(p, r, k, depth); break;
        case 2: add_weight_rows<2>(p, r, k, depth); break;
        case 1: add_weight_rows<1>(p, r, k, depth); break;
        default: break;
        }
    }
}

/// y[r, c] = x[r] . w[c] of `Rows` rows and `Columns` columns, each in the order of a dot product (rows.hpp).
template <int Rows, int Columns>
RHEO_INLINE void dots(row_product const& p, count_t row, count_t column)
{
    float const* const x = p.x + row * p.x_row;
    float const* const w = p.w + column * p.w_row;
    lanes even[Rows][Columns] = {};
    lanes odd[Rows][Columns] = {};
    count_t k = 0;
    for (; k + 2 * width <= p.depth; k += 2 * width) {
        for (int c = 0; c < Columns; ++c) {
            lanes const w0 = load(w + c * p.w_row + k);
            lanes const w1 = load(w + c * p.w_row + k + width);
            for (int r = 0; r < Rows; ++r) {
                even[r][c] += load(x + r * p.x_row + k) * w0;
                odd[r][c] += load(x + r * p.x_row + k + width) * w1;
            }
        }
    }
    for (; k < p.depth; k += width) {
        count_t const n = p.depth - k < width ? p.depth - k : width;
        for (int c = 0; c < Columns; ++c) {
            lanes const last = load_part(w + c * p.w_row + k, n, 0);
            for (int r = 0; r < Rows; ++r) {
                (n == width ? even : odd)[r][c] += load_part(x + r * p.x_row + k, n, 0) * last;
            }
        }
    }
    for (int r = 0; r < Rows; ++r) {
        for (int c = 0; c < Columns; ++c) {
            p.y[(row + r) * p.y_row + column + c] = fold_sum(even[r][c] + odd[r][c]);
        }
    }
}

template <int Rows>
RHEO_INLINE void dots_of_rows(row_product const& p, count_t row)
{
    count_t c = 0;
    for (; c + 2 <= p.columns; c += 2) {
        dots<Rows, 2>(p, row, c);
    }
    if (c < p.columns) {
        dots<Rows, 1>(p, row, c);
    }
}

void dots_in_rows(row_product const& p)
{
    count_t r = 0;
    for (; r + 4 <= p.rows; r += 4) {
        dots_of_rows<4>(p, r);
    }
    for (; r + 2 <= p.rows; r += 2) {
        dots_of_rows<2>(p, r);
    }
    if (r < p.rows) {
        dots_of_rows<1>(p, r);
    }
}

}  // namespace
}  // namespace rheo::inline v0::detail
