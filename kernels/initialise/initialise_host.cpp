// SPDX-License-Identifier: Apache-2.0
#include "kernels/initialise/initialise.hpp"

#include <algorithm>

#include "kernels/detail/tile_ranges.hpp"

namespace rheo::inline v0::host {

using namespace detail;

void initialise_normal(tile_pool& pool, initialise_normal_arguments<> const& a)
{
    auto const stream = stream_of(initial_values_key(a.seed, a.tensor));
    stream_parts const parts{.key = {stream.key[0], stream.key[1]}, .high = {stream.high[0], stream.high[1]}};
    pool.run(tiles_in(a.count, element_tile), [&](std::int64_t t, int) {
        auto const range = range_of(t, element_tile, a.count);
        loops().normal_values(parts, a.first + range.begin, range.count, a.mean, a.deviation, a.values + range.begin);
    });
}

void initialise_constant(tile_pool& pool, initialise_constant_arguments<> const& a)
{
    pool.run(tiles_in(a.count, element_tile), [&](std::int64_t t, int) {
        auto const range = range_of(t, element_tile, a.count);
        std::fill_n(a.values + range.begin, range.count, static_cast<float>(a.value));
    });
}

}  // namespace rheo::inline v0::host
