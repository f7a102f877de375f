// SPDX-License-Identifier: Apache-2.0
#include "kernels/layer_norm/layer_norm.hpp"

#include "kernels/detail/tile_ranges.hpp"

namespace rheo::inline v0::host {

using namespace detail;

namespace {
constexpr std::int64_t row_tile = 16;
}

void layer_norm_forward(tile_pool& pool, layer_norm_forward_arguments<> const& a)
{
    pool.run(tiles_in(a.rows, row_tile), [&](std::int64_t t, int) {
        auto const rows = range_of(t, row_tile, a.rows);
        for (std::int64_t r = rows.begin; r < rows.begin + rows.count; ++r) {
            loops().norm_forward(a.width, static_cast<float>(a.epsilon), a.input + r * a.width, a.gamma, a.beta, a.output + r * a.width, a.mean + r,
                                 a.rstd + r);
        }
    });
}

void layer_norm_backward_input(tile_pool& pool, layer_norm_backward_input_arguments<> const& a)
{
    pool.run(tiles_in(a.rows, row_tile), [&](std::int64_t t, int) {
        auto const rows = range_of(t, row_tile, a.rows);
        for (std::int64_t r = rows.begin; r < rows.begin + rows.count; ++r) {
            loops().norm_backward(a.width, a.input + r * a.width, a.gamma, a.mean[r], a.rstd[r], a.output_gradient + r * a.width,
                                  a.bypass_gradient != nullptr ? a.bypass_gradient + r * a.width : nullptr, a.input_gradient + r * a.width);
        }
    });
}

template <dtype_policy Policy>
void layer_norm_backward_weight_of(tile_pool& pool, layer_norm_backward_weight_arguments<Policy> const& a)
{
    std::mutex mutex;
    pool.run(tiles_in(a.width, 64), [&](std::int64_t t, int) {
        auto const columns = range_of(t, 64, a.width);
        float gamma[64];
        float beta[64];
        loops().norm_column_sums(a.rows, columns.count, a.width, a.input + columns.begin, a.mean, a.rstd, a.output_gradient + columns.begin, gamma, beta);
        if (a.gamma_gradient.sums != nullptr) {
            exact_run run{a.gamma_gradient};
            run.add(columns.begin, gamma, columns.count);
            run.merge(mutex);
        }
        if (a.beta_gradient.sums != nullptr) {
            exact_run run{a.beta_gradient};
            run.add(columns.begin, beta, columns.count);
            run.merge(mutex);
        }
    });
}

void layer_norm_backward_weight(tile_pool& pool, layer_norm_backward_weight_arguments<> const& a) { layer_norm_backward_weight_of(pool, a); }
void layer_norm_backward_weight(tile_pool& pool, layer_norm_backward_weight_arguments<fp32_i32> const& a) { layer_norm_backward_weight_of(pool, a); }

}  // namespace rheo::inline v0::host
