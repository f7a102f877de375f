// SPDX-License-Identifier: Apache-2.0
#include "executor/stage/activation.hpp"

#include <algorithm>
#include <utility>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

/// Gives parts of regions away, one behind the other.
std::ptrdiff_t take(std::size_t& region, bytes size)
{
    auto const offset = static_cast<std::ptrdiff_t>(region);
    region += static_cast<std::size_t>(size.count);
    return offset;
}

}  // namespace

activation_layout::activation_layout(std::span<layer_description const> of, microbatch_shape shape, dtype_policy const& policy, memory& place,
                                     std::span<recompute_level const> drops, shard_group const& group)
    : recompute_levels(of.size(), recompute_level::none), rows{rheo::rows(shape)}, where{&place}
{
    expects(drops.empty() || drops.size() == of.size(), "what is recomputed is given for every layer of a stage");
    std::copy(drops.begin(), drops.end(), recompute_levels.begin());
    std::ptrdiff_t given = -1;  // where the layer before left its output
    for (auto const& layer : of) {
        auto const how = recompute_levels[layers.size()];
        auto const& all = shards.emplace_back(shards_of(layer, group));
        auto const count = all.shards.size();
        std::size_t of_layer = 0;  // in the region for what is recomputed
        places here;
        here.slots.assign(count, std::vector<std::ptrdiff_t>(all.slots(), -1));
        here.saved.assign(count, std::vector<std::ptrdiff_t>(all.ops(), -1));
        here.gradients = here.slots;
        // A matrix for each shard, or one for all of them.
        auto const take_slot = [&](std::size_t& region, std::size_t s, std::vector<std::vector<std::ptrdiff_t>>& offsets) {
            auto const number = static_cast<int>(s);
            for (std::size_t j = 0; j < count; ++j) {
                offsets[j][s] = j > 0 && !all.is_cut(number) ? offsets[0][s] : take(region, matrix_bytes(all.width(j, number) * rows, policy.storage));
            }
        };
        for (std::size_t s = 0; s < all.slots(); ++s) {
            auto const number = static_cast<int>(s);
            here.dropped.push_back(is_dropped(all, number, shape, how, policy) ? 1 : 0);
            if (!all.is_kept(number)) {
                continue;
            }
            if (here.dropped.back() != 0) {
                take_slot(of_layer, s, here.slots);
            } else if (s > 0 || layers.empty()) {
                take_slot(s == 0 ? input_bytes : memory_bytes, s, here.slots);
            } else {
                for (auto& of_shard : here.slots) {
                    of_shard[0] = given;
                }
            }
        }
        for (std::size_t o = 0; o < all.ops(); ++o) {
            auto const& first = all.first().ops[o];
            bool const each = saves_by_head(first.own.kind);
            for (std::size_t j = 0; j < count && first.kind == shard_op_kind::operation; ++j) {
                here.saved[j][o] = j > 0 && !each
                                       ? here.saved[0][o]
                                       : take(how == recompute_level::full ? of_layer : memory_bytes, saved_bytes(all.shards[j].ops[o].own, shape, policy));
            }
            if (auto const kept = kept_gradient_slot(all, first); kept != no_slot && here.gradients[0][static_cast<std::size_t>(kept)] < 0) {
                take_slot(gradient_bytes, static_cast<std::size_t>(kept), here.gradients);
            }
        }
        auto const output = all.first().output;
        given = output == no_slot ? -1 : here.slots[0][static_cast<std::size_t>(all.place_of(output))];
        recompute_bytes = std::max(recompute_bytes, of_layer);
        layers.push_back(std::move(here));
    }
}

}  // namespace rheo::inline v0
