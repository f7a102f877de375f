// SPDX-License-Identifier: Apache-2.0
#include "kernels/exact/exact.hpp"

#include <cstring>

#include "kernels/detail/tile_ranges.hpp"

namespace rheo::inline v0::host {

using namespace detail;

void exact_accumulate(tile_pool& pool, exact_accumulate_arguments const& a)
{
    std::mutex mutex;
    pool.run(tiles_in(a.count, element_tile), [&](std::int64_t t, int) {
        auto const range = range_of(t, element_tile, a.count);
        exact_run run{a.target};
        for (std::int64_t i = 0; i < range.count; i += 1024) {  // 4 KiB: the second look finds it in the first cache
            run.add(range.begin + i, a.gradient + range.begin + i, std::min<std::int64_t>(1024, range.count - i));
        }
        run.merge(mutex);
    });
}

void exact_add(tile_pool& pool, exact_add_arguments const& a)
{
    pool.run(tiles_in(a.count, element_tile), [&](std::int64_t t, int) {
        auto const range = range_of(t, element_tile, a.count);
        loops().add_integers(range.count, a.source + range.begin, a.target + range.begin);
    });
}

void exact_convert(tile_pool& pool, exact_convert_arguments const& a)
{
    double const scale = power_of_two(-a.scale_log2);
    pool.run(tiles_in(a.count, element_tile), [&](std::int64_t t, int) {
        auto const range = range_of(t, element_tile, a.count);
        loops().to_floats(range.count, a.sums + range.begin, scale, a.gradient + range.begin);
    });
}

void exact_zero(tile_pool& pool, std::int64_t count, std::int64_t* sums)
{
    pool.run(tiles_in(count, element_tile), [&](std::int64_t t, int) {
        auto const range = range_of(t, element_tile, count);
        std::memset(sums + range.begin, 0, static_cast<std::size_t>(range.count) * sizeof(std::int64_t));
    });
}

}  // namespace rheo::inline v0::host
