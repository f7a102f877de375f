#pragma once
// SPDX-License-Identifier: Apache-2.0

// The sentence in which a layer is refused, and how it begins. Those who judge a layer ask one question after the other; each returns true and leaves
// the sentence when there is a fault. Only then is text made: the compiler asks all of this of each layer type.

#include <cstddef>
#include <cstdint>

#include "rheo/model/layer.hpp"
#include "rheo/units/fixed_text.hpp"

namespace rheo::inline v0::detail {

using layer_sentence = fixed_text<240>;

struct layer_judge {
    layer_description const& layer;
    layer_sentence& fault;

    constexpr layer_sentence& operation(std::size_t o)
    {
        return fault << "operation " << static_cast<std::int64_t>(o) << " (" << name_of(layer.ops[o].kind) << ") ";
    }
    constexpr int width_of(int slot) const { return layer.slot_widths[static_cast<std::size_t>(slot)]; }
};

}  // namespace rheo::inline v0::detail
