// SPDX-License-Identifier: Apache-2.0
// The same loops as residual_add and layer_norm, one row after the other while the row is in cache.
#include "kernels/residual_norm/residual_norm.hpp"

#include <cstring>

#include "kernels/detail/tile_ranges.hpp"

namespace rheo::inline v0::host {

using namespace detail;

namespace {
constexpr std::int64_t row_tile = 16;
}

void residual_norm_forward(tile_pool& pool, residual_norm_forward_arguments<> const& a)
{
    dropping const drop{a.drop};
    pool.run(tiles_in(a.rows, row_tile), [&](std::int64_t t, int worker) {
        auto const rows = range_of(t, row_tile, a.rows);
        for (std::int64_t r = rows.begin; r < rows.begin + rows.count; ++r) {
            std::int64_t const at = r * a.width;
            if (drop.active()) {
                loops().add_dropped(a.width, a.stream + at, a.branch + at, drop.row_rule(pool, worker, r, a.width), a.residual + at);
            } else {
                loops().add(a.width, a.stream + at, a.branch + at, a.residual + at);
            }
            loops().norm_forward(a.width, static_cast<float>(a.epsilon), a.residual + at, a.gamma, a.beta, a.output + at, a.mean + r, a.rstd + r);
        }
    });
}

void residual_norm_backward(tile_pool& pool, residual_norm_backward_arguments<> const& a)
{
    dropping const drop{a.drop};
    pool.run(tiles_in(a.rows, row_tile), [&](std::int64_t t, int worker) {
        auto const rows = range_of(t, row_tile, a.rows);
        for (std::int64_t r = rows.begin; r < rows.begin + rows.count; ++r) {
            std::int64_t const at = r * a.width;
            loops().norm_backward(a.width, a.residual + at, a.gamma, a.mean[r], a.rstd[r], a.output_gradient + at,
                                  a.bypass_gradient != nullptr ? a.bypass_gradient + at : nullptr, a.stream_gradient + at);
            if (drop.active()) {
                loops().drop(a.width, a.stream_gradient + at, drop.row_rule(pool, worker, r, a.width), a.branch_gradient + at);
            } else {
                std::memcpy(a.branch_gradient + at, a.stream_gradient + at, static_cast<std::size_t>(a.width) * sizeof(float));
            }
        }
    });
}

}  // namespace rheo::inline v0::host
