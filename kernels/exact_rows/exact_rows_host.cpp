// SPDX-License-Identifier: Apache-2.0
#include "kernels/exact_rows/exact_rows.hpp"

#include <cstring>

#include "kernels/detail/tile_ranges.hpp"

namespace rheo::inline v0::host {

using namespace detail;

void exact_rows_add(tile_pool& pool, exact_rows_add_arguments const& a)
{
    auto const count = a.rows * a.target.width;
    pool.run(tiles_in(count, element_tile), [&](std::int64_t t, int) {
        auto const range = range_of(t, element_tile, count);
        loops().add_integers_32(range.count, a.source + range.begin, a.target.sums + range.begin);
    });
    for (std::int64_t r = 0; r < a.rows && a.source_states != nullptr; ++r) {
        a.target.states[r] = joined(a.target.states[r], a.source_states[r]);
    }
}

void exact_rows_convert(tile_pool& pool, exact_rows_convert_arguments const& a)
{
    auto const count = a.rows * a.source.width;
    pool.run(tiles_in(count, element_tile), [&](std::int64_t t, int worker) {
        auto const range = range_of(t, element_tile, count);
        auto* const sums = pool.scratch_of<std::int32_t>(worker, range.count, row_slot);  // the floats may take their place
        std::memcpy(sums, a.source.sums + range.begin, static_cast<std::size_t>(range.count) * sizeof(std::int32_t));
        for (std::int64_t done = 0; done < range.count;) {
            auto const first = range.begin + done;
            auto const row = first / a.source.width;
            auto const run = std::min(range.count - done, (row + 1) * a.source.width - first);
            loops().to_floats_32(run, sums + done, power_of_two(-a.source.states[row].scale_log2), a.gradient + first);
            done += run;
        }
    });
}

}  // namespace rheo::inline v0::host
