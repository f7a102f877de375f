// SPDX-License-Identifier: Apache-2.0
// A tile is a query with all heads that share keys: these are read once for them. Products in rows (detail/loops/products.hpp).
#include "kernels/attention/cached_attention.hpp"

#include "kernels/detail/tile_ranges.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::host {

using namespace detail;

void cached_attention(tile_pool& pool, cached_attention_arguments<> const& a)
{
    qkv_row const in{a};
    expects(a.heads >= 1 && a.width % a.heads == 0 && a.heads % in.group == 0, "heads divide the width, and heads of keys and values those of queries");
    float const scale = 1.0F / std::sqrt(static_cast<float>(in.head_width));
    std::int64_t const row = 2 * in.kv_width;  // of the cache
    std::int64_t const groups = a.heads / in.group;
    pool.run(a.rows * groups, [&](std::int64_t t, int worker) {
        std::int64_t const query = t / groups;
        std::int64_t const head = t % groups * in.group;  // the first of its group
        std::int64_t const seen = a.first + query + 1;
        float* const p = pool.scratch_of<float>(worker, in.group * seen, product_slot);
        float const* const keys = a.keys_and_values + in.pair(head);
        loops().dots_in_rows({.rows = in.group,
                              .depth = in.head_width,
                              .columns = seen,
                              .x = a.qkv + query * in.floats() + in.query(head),
                              .x_row = in.head_width,
                              .w = keys,
                              .w_row = row,
                              .y = p,
                              .y_row = seen});
        for (std::int64_t h = 0; h < in.group; ++h) {
            loops().softmax(seen, scale, p + h * seen);
        }
        loops().product_in_rows({.rows = in.group,
                                 .depth = seen,
                                 .columns = in.head_width,
                                 .x = p,
                                 .x_row = seen,
                                 .w = keys + in.kv_width,
                                 .w_row = row,
                                 .y = a.output + query * a.width + in.query(head),
                                 .y_row = in.head_width});
    });
}

}  // namespace rheo::inline v0::host
