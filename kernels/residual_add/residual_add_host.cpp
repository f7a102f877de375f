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
        float const* const stream = a.stream + range.begin;
        float const* const branch = a.branch + range.begin;
        if (drop.active()) {
            loops().add_dropped(range.count, stream, branch, drop.rule(pool, worker, range.begin, range.count),
                                a.output + range.begin);
        } else {
            loops().add(range.count, stream, branch, a.output + range.begin);
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
            loops().drop(range.count, a.output_gradient + range.begin, drop.rule(pool, worker, range.begin, range.count),
                         a.branch_gradient + range.begin);
        } else {
            std::memcpy(a.branch_gradient + range.begin, a.output_gradient + range.begin,
                        static_cast<std::size_t>(range.count) * sizeof(float));
        }
    });
}

}  // namespace rheo::inline v0::host
