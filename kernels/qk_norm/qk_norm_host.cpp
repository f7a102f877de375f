// SPDX-License-Identifier: Apache-2.0
#include "kernels/qk_norm/qk_norm.hpp"

#include <cstring>

#include "kernels/detail/tile_ranges.hpp"

namespace rheo::inline v0::host {

using namespace detail;

namespace {

constexpr std::int64_t row_tile = 16;
constexpr std::int64_t column_tile = 64;

/// Calls work(row, head, its first element) for the heads of q and k of the tile's rows, and copies the values.
template <class Arguments, class Work>
void for_each_head(tile_pool& pool, Arguments const& a, float const* from, float* to, Work const& work)
{
    auto const all = a.heads + 2 * a.kv_heads;
    auto const normed = a.heads + a.kv_heads;
    pool.run(tiles_in(a.rows, row_tile), [&](std::int64_t t, int) {
        auto const rows = range_of(t, row_tile, a.rows);
        for (std::int64_t r = rows.begin; r < rows.begin + rows.count; ++r) {
            for (std::int64_t h = 0; h < normed; ++h) {
                work(r, h, (r * all + h) * a.head_width);
            }
            auto const values = (r * all + normed) * a.head_width;
            if (from != to) {
                std::memcpy(to + values, from + values, static_cast<std::size_t>(a.kv_heads * a.head_width) * sizeof(float));
            }
        }
    });
}

/// Each tile of columns adds up the heads of q, or of k, in their order, the rows of each as a norm's weight gradient does.
template <dtype_policy Policy>
void backward_weight(tile_pool& pool, qk_norm_backward_weight_arguments<Policy> const& a)
{
    auto const all = a.heads + 2 * a.kv_heads;
    auto const tiles = tiles_in(a.head_width, column_tile);
    std::mutex of_queries, of_keys;
    pool.run(2 * tiles, [&](std::int64_t t, int) {
        bool const queries = t < tiles;
        auto const& target = queries ? a.query_gradient : a.key_gradient;
        if (target.sums == nullptr) {
            return;
        }
        auto const columns = range_of(t % tiles, column_tile, a.head_width);
        float sums[column_tile] = {};
        for (std::int64_t h = queries ? 0 : a.heads; h < (queries ? a.heads : a.heads + a.kv_heads); ++h) {
            float of_head[column_tile];
            auto const first = h * a.head_width + columns.begin;
            loops().rms_column_sums(a.rows, columns.count, all * a.head_width, a.input + first, a.rstd + h * a.rows, a.output_gradient + first, of_head);
            for (std::int64_t c = 0; c < columns.count; ++c) {
                sums[c] += of_head[c];
            }
        }
        exact_run run{target};
        run.add(columns.begin, sums, columns.count);
        run.merge(queries ? of_queries : of_keys);
    });
}

}  // namespace

void qk_norm_forward(tile_pool& pool, qk_norm_forward_arguments<> const& a)
{
    expects(a.input != a.output, "a norm of queries and keys does not write over what its backward reads");
    for_each_head(pool, a, a.input, a.output, [&](std::int64_t r, std::int64_t h, std::int64_t first) {
        loops().rms_forward(a.head_width, static_cast<float>(a.epsilon), a.input + first, h < a.heads ? a.query_gamma : a.key_gamma, a.output + first,
                            a.rstd + h * a.rows + r);
    });
}

void qk_norm_backward_input(tile_pool& pool, qk_norm_backward_input_arguments<> const& a)
{
    for_each_head(pool, a, a.output_gradient, a.input_gradient, [&](std::int64_t r, std::int64_t h, std::int64_t first) {
        loops().rms_backward(a.head_width, a.input + first, h < a.heads ? a.query_gamma : a.key_gamma, a.rstd[h * a.rows + r], a.output_gradient + first,
                             nullptr, a.input_gradient + first);
    });
}

void qk_norm_backward_weight(tile_pool& pool, qk_norm_backward_weight_arguments<> const& a) { backward_weight(pool, a); }
void qk_norm_backward_weight(tile_pool& pool, qk_norm_backward_weight_arguments<fp32_i32> const& a) { backward_weight(pool, a); }

}  // namespace rheo::inline v0::host
