// SPDX-License-Identifier: Apache-2.0
#include "executor/stage/sequence_run.hpp"

#include <algorithm>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

key_value_cache::key_value_cache(std::span<layer_description const> layers, layer_id first)
{
    for (std::size_t l = 0; l < layers.size(); ++l) {
        for (auto const& o : layers[l].ops) {
            if (o.kind == op_kind::attention) {
                attentions_.push_back({layer_id{first.value + static_cast<int>(l)}, o.id, o.in_width - o.out_width});
            }
        }
    }
}

float* key_value_cache::of(layer_id layer, op_id op, std::int64_t tokens)
{
    auto const found = std::find_if(attentions_.begin(), attentions_.end(), [&](attention const& a) { return a.layer == layer && a.op == op; });
    expects(found != attentions_.end(), "a cache of keys and values is of the layers that use it");
    auto& rows = found->rows;
    if (auto const wanted = static_cast<std::size_t>(tokens * found->width); rows.size() < wanted) {
        rows.resize(std::max(wanted, rows.size() + rows.size() / 2));
    }
    return rows.data();
}

std::int64_t key_value_cache::bytes() const
{
    std::int64_t sum = 0;
    for (auto const& a : attentions_) {
        sum += static_cast<std::int64_t>(a.rows.capacity() * sizeof(float));
    }
    return sum;
}

std::int64_t key_value_cache::bytes_of_token() const
{
    std::int64_t sum = 0;
    for (auto const& a : attentions_) {
        sum += a.width * static_cast<std::int64_t>(sizeof(float));
    }
    return sum;
}

}  // namespace rheo::inline v0
