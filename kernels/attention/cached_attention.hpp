#pragma once
// SPDX-License-Identifier: Apache-2.0

// Causal attention with a key/value cache: neighbouring tokens of one sequence attend to all tokens up to each of them. Each query is computed by itself, so
// its bits depend neither on how many queries are beside it nor on how a sequence is cut into forwards.

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/attention/attention.hpp"

namespace rheo::inline v0 {

template <dtype_policy Policy = fp32>
struct cached_attention_arguments {
    std::int64_t rows;   ///< queries, of neighbouring tokens
    std::int64_t first;  ///< the position of the first: so many tokens lie before it
    std::int64_t width;  ///< of the model, a multiple of heads
    std::int64_t heads;
    std::int64_t kv_heads = 0;                 ///< of keys and values, a divisor of heads; 0: heads
    storage_t<Policy> const* qkv;              // [rows, width + 2 * kv_width], of which queries are read
    storage_t<Policy> const* keys_and_values;  // [first + rows, 2 * kv_width]: of a token keys of all heads, then values
    storage_t<Policy>* output;                 // [rows, width]
};

namespace definition {

template <dtype_policy Policy>
void cached_attention(cached_attention_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    qkv_row const in{a};
    std::int64_t const d = in.head_width;
    compute const scale = compute(1) / std::sqrt(static_cast<compute>(d));
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (std::int64_t h = 0; h < a.heads; ++h) {
            auto const* const q = a.qkv + i * in.floats() + in.query(h);
            std::vector<compute> p;
            compute largest = -std::numeric_limits<compute>::infinity();
            for (std::int64_t j = 0; j <= a.first + i; ++j) {
                auto const* const k = a.keys_and_values + j * 2 * in.kv_width + in.pair(h);
                compute sum = 0;
                for (std::int64_t c = 0; c < d; ++c) {
                    sum += compute(q[c]) * compute(k[c]);
                }
                p.push_back(sum * scale);
                largest = std::max(largest, p.back());
            }
            compute total = 0;
            for (auto& one : p) {
                one = std::exp(one - largest);
                total += one;
            }
            for (std::int64_t c = 0; c < d; ++c) {
                compute sum = 0;
                for (std::int64_t j = 0; j <= a.first + i; ++j) {
                    sum += p[static_cast<std::size_t>(j)] / total * compute(a.keys_and_values[j * 2 * in.kv_width + in.kv_width + in.pair(h) + c]);
                }
                a.output[i * a.width + h * d + c] = static_cast<storage_t<Policy>>(sum);
            }
        }
    }
}

}  // namespace definition

class tile_pool;

namespace host {

void cached_attention(tile_pool& pool, cached_attention_arguments<> const& arguments);

}  // namespace host
}  // namespace rheo::inline v0
