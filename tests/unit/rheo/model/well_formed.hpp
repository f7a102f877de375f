#pragma once
// SPDX-License-Identifier: Apache-2.0

// What must hold of every layer that the library or a rewrite makes, so that anyone who interprets its operations in
// order finds each slot written before it is read, each width right and each parameter used once.

#include <vector>

#include "rheo/model/gpt.hpp"
#include "rheo/model/layer.hpp"

namespace test {

using namespace rheo;

constexpr bool well_formed(layer_description const& layer)
{
    auto const slots = static_cast<int>(layer.slot_widths.size());
    std::vector<bool> written(static_cast<std::size_t>(slots));
    std::vector<int> used(layer.parameters.size());
    if (slots == 0 || layer.slot_widths[0] != layer.in_width) {
        return false;
    }
    written[0] = true;
    int last_id = -1;
    for (auto const& o : layer.ops) {
        for (auto const x : o.x) {
            if (x != no_slot && (x < 0 || x >= slots || !written[static_cast<std::size_t>(x)])) {
                return false;
            }
        }
        for (auto const z : o.z) {
            if (z == no_slot) {
                continue;
            }
            if (z < 0 || z >= slots || (written[static_cast<std::size_t>(z)] && !is_in_place(o)) ||
                layer.slot_widths[static_cast<std::size_t>(z)] != o.out_width) {
                return false;  // written once only, or in place: backward needs what is there
            }
            written[static_cast<std::size_t>(z)] = true;
        }
        if (o.x[0] != no_slot && layer.slot_widths[static_cast<std::size_t>(o.x[0])] != o.in_width) {
            return false;
        }
        for (auto const p : o.parameters) {
            if (p != no_parameter) {
                ++used.at(static_cast<std::size_t>(p));
            }
        }
        if (o.id.value <= last_id) {
            return false;
        }
        last_id = o.id.value;
    }
    for (auto const w : written) {
        if (!w) {
            return false;
        }
    }
    for (auto const count : used) {
        if (count != 1) {
            return false;
        }
    }
    return layer.output == no_slot ? layer.out_width == 0 : layer.slot_widths[static_cast<std::size_t>(layer.output)] == layer.out_width;
}

inline constexpr gpt_shape gpt2_124m{.vocabulary = 50257, .context = 1024, .width = 768, .heads = 12, .blocks = 12};
inline constexpr gpt_shape small{.vocabulary = 256, .context = 128, .width = 64, .heads = 4, .blocks = 2, .dropout_per_mille = 100};

}  // namespace test
