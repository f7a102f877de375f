#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything a stage keeps of one microbatch between its forward and its backward: all slots of its
// layers and what operations save. A layer's slot 0 is the slot that the layer before it gave, so only
// the stage's own input has memory of its own. Microbatches come and go; their memory is kept and reused.
//
// A split backward keeps gradients besides, from its input gradient to its weight gradient, in a second
// region that programs with whole backwards never allocate.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rheo/model/footprint.hpp"
#include "rheo/model/layer.hpp"

namespace rheo::inline v0 {

/// Where slots, saved values and kept gradients lie in the two regions of one activation.
struct activation_layout {
    activation_layout(std::span<layer_description const> layers, microbatch_shape shape);

    std::vector<std::vector<std::ptrdiff_t>> slots;      ///< layer of the stage, slot -> offset in floats
    std::vector<std::vector<std::ptrdiff_t>> saved;      ///< layer of the stage, operation -> offset in floats
    std::vector<std::vector<std::ptrdiff_t>> gradients;  ///< layer of the stage, slot -> offset of its kept gradient; -1: not kept
    std::size_t floats = 0;
    std::size_t gradient_floats = 0;
    std::int64_t rows = 0;
};

struct activation {
    explicit activation(activation_layout const& layout)
        : memory(new float[layout.floats]), tokens(static_cast<std::size_t>(layout.rows)), targets(tokens.size()) {}

    std::unique_ptr<float[]> memory;
    std::unique_ptr<float[]> gradients;  ///< lent by the stage while a split backward is between its halves
    std::vector<std::int32_t> tokens;   ///< [rows], read by an embedding
    std::vector<std::int32_t> targets;  ///< [rows], read by the loss
};

}  // namespace rheo::inline v0
