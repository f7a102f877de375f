// SPDX-License-Identifier: Apache-2.0
#include "kernels/residual_add/residual_add.hpp"

#include <cstring>

#include "kernels/detail/tile_ranges.hpp"

namespace rheo::inline v0::host {

using namespace detail;

void residual_add_forward(tile_pool& pool, residual_add_forward_arguments<> const& a)
{
    dropping const drop{a.drop};
    std::int64_t const count = a.rows * a.width;
    pool.run(tiles_in(count, element_tile), [&](std::int64_t t, int worker) {
        auto const range = range_of(t, element_tile, count);
        if (drop.active()) {
            drop.for_runs(pool, worker, range, a.width, [&](std::int64_t at, std::int64_t n, drop_rule const& rule) {
                loops().add_dropped(n, a.stream + at, a.branch + at, rule, a.output + at);
            });
        } else {
            loops().add(range.count, a.stream + range.begin, a.branch + range.begin, a.output + range.begin);
        }
    });
}

void residual_add_backward(tile_pool& pool, residual_add_backward_arguments<> const& a)
{
    dropping const drop{a.drop};
    std::int64_t const count = a.rows * a.width;
    if (!drop.active() && a.branch_gradient == a.output_gradient) {
        return;
    }
    pool.run(tiles_in(count, element_tile), [&](std::int64_t t, int worker) {
        auto const range = range_of(t, element_tile, count);
        if (drop.active()) {
            drop.for_runs(pool, worker, range, a.width, [&](std::int64_t at, std::int64_t n, drop_rule const& rule) {
                loops().drop(n, a.output_gradient + at, rule, a.branch_gradient + at);
            });
        } else {
            std::memcpy(a.branch_gradient + range.begin, a.output_gradient + range.begin, static_cast<std::size_t>(range.count) * sizeof(float));
        }
    });
}

}  // namespace rheo::inline v0::host
