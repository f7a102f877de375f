// SPDX-License-Identifier: Apache-2.0
// Costs and sizes against counts by thought. The compiler decides all of it.
#include "rheo/model/footprint.hpp"

#include <array>
#include <span>

#include "rheo/model/model.hpp"
#include "well_formed.hpp"

using namespace rheo;
using test::gpt2_124m;
using test::small;

namespace {

constexpr microbatch_shape shape{.sequences = 4, .tokens = 64};
constexpr auto block = block_layer(gpt2_124m);
constexpr std::int64_t w = 768;
constexpr std::int64_t r = 256;

// Two operations per weight and token, and attention.
constexpr std::int64_t weights = 12 * w * w;
constexpr std::int64_t attention = 2 * r * 65 * w;
static_assert(forward_flops(block, shape) == flops{2 * r * weights + attention});
static_assert(backward_flops(block, shape) == flops{4 * r * weights + attention * 5 / 2});
static_assert(forward_flops(embedding_layer(gpt2_124m), shape) == flops{0});
static_assert(forward_flops(classifier_layer(gpt2_124m), shape) == flops{2 * r * w * 50257});

// Parameter, two moments; int64 sums and the reduced gradient.
static_assert(committed_bytes(block) == bytes{7'087'872 * 12} && persistent_bytes(block) == bytes{7'087'872 * 24});

// Slots: 1 in, norm 1, qkv 3, mixed 1, projected 1, middle 1, norm 1, before 4, after 4, down 1, out 1 widths; norms keep 2 and attention
// `heads` floats a row.
static_assert(activation_bytes(block, shape) == bytes{4 * r * (19 * w + 2 + 2 + 12)});
static_assert(boundary_bytes(block, shape) == bytes{4 * r * w} && boundary_bytes(classifier_layer(gpt2_124m), shape) == bytes{0});

/// Everything that is per token grows with the sequences alone.
constexpr bool linear_in_sequences(layer_description const& layer)
{
    constexpr microbatch_shape one{.sequences = 1, .tokens = 32};
    constexpr microbatch_shape five{.sequences = 5, .tokens = 32};
    return activation_bytes(layer, five) == activation_bytes(layer, one) * 5 && boundary_bytes(layer, five) == boundary_bytes(layer, one) * 5 &&
           forward_flops(layer, five) == forward_flops(layer, one) * 5 && backward_flops(layer, five) == backward_flops(layer, one) * 5;
}
static_assert(linear_in_sequences(block) && linear_in_sequences(fused(block)) && linear_in_sequences(embedding_layer(small)) &&
              linear_in_sequences(classifier_layer(small)));

// A stage of two blocks has the slot between them once. A split backward keeps what the operations with parameters wrote: norm 1, qkv 3,
// projected 1, norm 1, before 4, down 1 widths a block.
constexpr std::array two{block, block};
static_assert(activation_bytes(std::span{two}, shape) == activation_bytes(block, shape) * 2 - bytes{4 * r * w});
static_assert(kept_gradient_bytes(std::span{two}, shape) == bytes{2 * 4 * r * 11 * w});

// The gradient of the logits is kept, unless the loss leaves it in their place.
constexpr std::array plain{classifier_layer(gpt2_124m)};
constexpr std::array joined{fused(classifier_layer(gpt2_124m))};
static_assert(kept_gradient_bytes(std::span{joined}, shape) == bytes{4 * r * w});
static_assert(kept_gradient_bytes(std::span{plain}, shape) == bytes{4 * r * (w + 50257)});

// Matrices begin on cache lines.
constexpr std::array odd{embedding_layer({.vocabulary = 5, .context = 3, .width = 7})};
static_assert(activation_bytes(std::span{odd}, {.sequences = 1, .tokens = 3}) == bytes{4 * 32} &&
              activation_bytes(odd.front(), {.sequences = 1, .tokens = 3}) == bytes{4 * 21});

}  // namespace
