// SPDX-License-Identifier: Apache-2.0
#include "executor/stage/activation.hpp"

#include <algorithm>
#include <utility>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

activation_layout::activation_layout(std::span<layer_description const> layers, microbatch_shape shape, dtype_policy const& policy, memory& place,
                                     std::span<recompute_level const> drops)
    : recompute_levels(layers.size(), recompute_level::none), rows{rheo::rows(shape)}, where{&place}
{
    expects(drops.empty() || drops.size() == layers.size(), "what is recomputed is given for every layer of a stage");
    std::copy(drops.begin(), drops.end(), recompute_levels.begin());
    auto const take = [](std::size_t& region, bytes size) {
        auto const offset = static_cast<std::ptrdiff_t>(region);
        region += static_cast<std::size_t>(size.count);
        return offset;
    };
    auto const slot = [&](layer_description const& layer, std::size_t s) { return matrix_bytes(layer.slot_widths[s] * rows, policy.storage); };
    std::ptrdiff_t given = -1;  // where the layer before left its output
    for (auto const& layer : layers) {
        auto const how = recompute_levels[slots.size()];
        std::size_t of_layer = 0;  // in the region for what is recomputed
        std::vector<char> drops_slot;
        std::vector<std::ptrdiff_t> places;
        for (std::size_t s = 0; s < layer.slot_widths.size(); ++s) {
            drops_slot.push_back(is_dropped(layer, static_cast<int>(s), shape, how, policy) ? 1 : 0);
            if (drops_slot.back() != 0) {
                places.push_back(take(of_layer, slot(layer, s)));
            } else if (slots.empty() && s == 0) {
                places.push_back(take(input_bytes, slot(layer, s)));
            } else {
                places.push_back(s == 0 ? given : take(memory_bytes, slot(layer, s)));
            }
        }
        std::vector<std::ptrdiff_t> kept;
        for (auto const& o : layer.ops) {
            kept.push_back(take(how == recompute_level::full ? of_layer : memory_bytes, saved_bytes(o, shape, policy)));
        }
        std::vector<std::ptrdiff_t> for_weights(layer.slot_widths.size(), -1);
        for (auto const& o : layer.ops) {
            if (auto const kept_slot = kept_gradient_slot(layer, o); kept_slot != no_slot) {
                auto const s = static_cast<std::size_t>(kept_slot);
                for_weights[s] = take(gradient_bytes, slot(layer, s));
            }
        }
        gradients.push_back(std::move(for_weights));
        given = layer.output == no_slot ? -1 : places[static_cast<std::size_t>(layer.output)];
        recompute_bytes = std::max(recompute_bytes, of_layer);
        dropped.push_back(std::move(drops_slot));
        slots.push_back(std::move(places));
        saved.push_back(std::move(kept));
    }
}

}  // namespace rheo::inline v0
