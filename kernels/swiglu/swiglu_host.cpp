// SPDX-License-Identifier: Apache-2.0
#include "kernels/swiglu/swiglu.hpp"

#include "kernels/detail/tile_ranges.hpp"

namespace rheo::inline v0::host {

using namespace detail;

namespace {
constexpr std::int64_t row_tile = 16;
}

void swiglu_forward(tile_pool& pool, swiglu_forward_arguments<> const& a)
{
    pool.run(tiles_in(a.rows, row_tile), [&](std::int64_t t, int) {
        auto const rows = range_of(t, row_tile, a.rows);
        for (std::int64_t r = rows.begin; r < rows.begin + rows.count; ++r) {
            float const* const gate = a.input + r * 2 * a.width;
            loops().swiglu(a.width, gate, gate + a.width, a.output + r * a.width);
        }
    });
}

void swiglu_backward(tile_pool& pool, swiglu_backward_arguments<> const& a)
{
    pool.run(tiles_in(a.rows, row_tile), [&](std::int64_t t, int) {
        auto const rows = range_of(t, row_tile, a.rows);
        for (std::int64_t r = rows.begin; r < rows.begin + rows.count; ++r) {
            float const* const gate = a.input + r * 2 * a.width;
            float* const gradient = a.input_gradient + r * 2 * a.width;
            loops().swiglu_backward(a.width, gate, gate + a.width, a.output_gradient + r * a.width, gradient, gradient + a.width);
        }
    });
}

}  // namespace rheo::inline v0::host
