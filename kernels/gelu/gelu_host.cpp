// SPDX-License-Identifier: Apache-2.0
#include "kernels/gelu/gelu.hpp"

#include "kernels/detail/tile_ranges.hpp"

namespace rheo::inline v0::host {

using namespace detail;

void gelu_forward(tile_pool& pool, gelu_forward_arguments<> const& a)
{
    pool.run(tiles_in(a.count, element_tile), [&](std::int64_t t, int) {
        auto const range = range_of(t, element_tile, a.count);
        loops().gelu(range.count, a.input + range.begin, a.output + range.begin);
    });
}

void gelu_backward(tile_pool& pool, gelu_backward_arguments<> const& a)
{
    pool.run(tiles_in(a.count, element_tile), [&](std::int64_t t, int) {
        auto const range = range_of(t, element_tile, a.count);
        loops().gelu_backward(range.count, a.input + range.begin, a.output_gradient + range.begin, a.input_gradient + range.begin);
    });
}

}  // namespace rheo::inline v0::host
