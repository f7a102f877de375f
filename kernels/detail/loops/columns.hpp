#pragma once
// SPDX-License-Identifier: Apache-2.0

// Down the columns of a block of rows: 32 rows are summed first, then the blocks in order.

#include "kernels/detail/loops/lanes.hpp"

namespace rheo::inline v0::detail {
namespace {

constexpr count_t row_block = 32;

void column_sums(count_t rows, count_t n, count_t row_size, float const* dy, float* out)
{
    float total[64] = {};
    for (count_t begin = 0; begin < rows; begin += row_block) {
        count_t const end = rows - begin < row_block ? rows : begin + row_block;
        lanes s[4] = {};
        for (count_t r = begin; r < end; ++r) {
            float const* row = dy + r * row_size;
            if (n == 64) {
                s[0] += load(row);
                s[1] += load(row + width);
                s[2] += load(row + 2 * width);
                s[3] += load(row + 3 * width);
            } else {
                for (count_t c = 0; c < n; c += width) {
                    s[c / width] += load_part(row + c, n - c < width ? n - c : width, 0);
                }
            }
        }
        float block[64];
        memcpy(block, s, sizeof s);
        for (int c = 0; c < 64; ++c) {
            total[c] += block[c];
        }
    }
    memcpy(out, total, static_cast<size_t>(n) * sizeof(float));
}

void norm_column_sums(count_t rows, count_t n, count_t row_size, float const* x, float const* mean, float const* rstd, float const* dy, float* gamma,
                      float* beta)
{
    float total_gamma[64] = {};
    float total_beta[64] = {};
    for (count_t begin = 0; begin < rows; begin += row_block) {
        count_t const end = rows - begin < row_block ? rows : begin + row_block;
        lanes g[4] = {};
        lanes b[4] = {};
        for (count_t r = begin; r < end; ++r) {
            float const m = mean[r];
            float const s = rstd[r];
            for (count_t c = 0; c < n; c += width) {
                count_t const at = r * row_size + c;
                bool const whole = n - c >= width;
                lanes const d = whole ? load(dy + at) : load_part(dy + at, n - c, 0);
                lanes const v = whole ? load(x + at) : load_part(x + at, n - c, 0);
                g[c / width] += d * ((v - m) * s);
                b[c / width] += d;
            }
        }
        float block[64];
        memcpy(block, g, sizeof g);
        for (int c = 0; c < 64; ++c) {
            total_gamma[c] += block[c];
        }
        memcpy(block, b, sizeof b);
        for (int c = 0; c < 64; ++c) {
            total_beta[c] += block[c];
        }
    }
    memcpy(gamma, total_gamma, static_cast<size_t>(n) * sizeof(float));
    memcpy(beta, total_beta, static_cast<size_t>(n) * sizeof(float));
}

void rms_column_sums(count_t rows, count_t n, count_t row_size, float const* x, float const* rstd, float const* dy, float* gamma)
{
    float total[64] = {};
    for (count_t begin = 0; begin < rows; begin += row_block) {
        count_t const end = rows - begin < row_block ? rows : begin + row_block;
        lanes g[4] = {};
        for (count_t r = begin; r < end; ++r) {
            float const s = rstd[r];
            for (count_t c = 0; c < n; c += width) {
                count_t const at = r * row_size + c;
                count_t const part = n - c < width ? n - c : width;
                g[c / width] += load_part(dy + at, part, 0) * (load_part(x + at, part, 0) * s);
            }
        }
        float block[64];
        memcpy(block, g, sizeof g);
        for (int c = 0; c < 64; ++c) {
            total[c] += block[c];
        }
    }
    memcpy(gamma, total, static_cast<size_t>(n) * sizeof(float));
}

}  // namespace
}  // namespace rheo::inline v0::detail
