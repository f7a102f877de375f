// SPDX-License-Identifier: Apache-2.0
#include "runtime/activation.hpp"

#include <utility>

namespace rheo::inline v0 {

activation_layout::activation_layout(std::span<layer_description const> layers, microbatch_shape shape)
    : rows{rheo::rows(shape)}
{
    auto const take = [](std::size_t& region, std::int64_t count) {
        auto const offset = static_cast<std::ptrdiff_t>(region);
        region += static_cast<std::size_t>((count + 15) / 16 * 16);  // rows of vectors begin on cache lines
        return offset;
    };
    std::ptrdiff_t given = -1;  // where the layer before left its output
    for (auto const& layer : layers) {
        std::vector<std::ptrdiff_t> places;
        for (std::size_t s = 0; s < layer.slot_widths.size(); ++s) {
            if (slots.empty() && s == 0) {
                places.push_back(take(input_floats, layer.slot_widths[s] * rows));
            } else {
                places.push_back(s == 0 ? given : take(memory_floats, layer.slot_widths[s] * rows));
            }
        }
        std::vector<std::ptrdiff_t> kept;
        for (auto const& o : layer.ops) {
            kept.push_back(take(memory_floats, saved_floats(o, shape)));
        }
        std::vector<std::ptrdiff_t> for_weights(layer.slot_widths.size(), -1);
        for (auto const& o : layer.ops) {
            if (auto const slot = kept_gradient_slot(layer, o); slot != no_slot) {
                auto const s = static_cast<std::size_t>(slot);
                for_weights[s] = take(gradient_floats, layer.slot_widths[s] * rows);
            }
        }
        gradients.push_back(std::move(for_weights));
        given = layer.output == no_slot ? -1 : places[static_cast<std::size_t>(layer.output)];
        slots.push_back(std::move(places));
        saved.push_back(std::move(kept));
    }
    floats = input_floats + memory_floats;
}

}  // namespace rheo::inline v0
