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

// Another policy. Slots, their gradients and messages have the stored type, saved numbers of rows the computed one.
static_assert(activation_bytes(block, shape, bf16) == bytes{2 * r * 19 * w + 4 * r * (2 + 2 + 12)});
static_assert(boundary_bytes(block, shape, bf16) == bytes{2 * r * w} && boundary_bytes(block, shape, fp64) == bytes{8 * r * w});
static_assert(activation_bytes(std::span{two}, shape, bf16) == activation_bytes(block, shape, bf16) * 2 - bytes{2 * r * w});
static_assert(kept_gradient_bytes(std::span{two}, shape, bf16) == bytes{2 * 2 * r * 11 * w} && input_bytes(std::span{two}, shape, bf16) == bytes{2 * r * w});
static_assert(activation_bytes(std::span{odd}, {.sequences = 1, .tokens = 3}, bf16) == bytes{64});  // 42 bytes, a line
static_assert(activation_bytes(std::span{two}, shape, fp64) == activation_bytes(std::span{two}, shape) * 2);

// Slices: attention of a Llama block of 12 wide heads keeps the gradients of two heads of keys and two of values, stored, from a line of their own on
// where the log-sum-exp is of another type: 12 rows x 4 heads of 4 bytes, and 12 rows x 48 of 2.
constexpr auto grouped = llama_block_layer({.vocabulary = 61, .context = 32, .width = 48, .heads = 4, .kv_heads = 2, .blocks = 1, .mlp_width = 64});
constexpr microbatch_shape cut{.sequences = 1, .tokens = 36, .slices = 3};
static_assert(saved_by(grouped.ops[3], cut) == saved_elements{12 * 4, 12 * 48});
static_assert(saved_bytes(grouped.ops[3], cut) == bytes{12 * (4 + 48) * 4} && saved_bytes(grouped.ops[3], cut, bf16) == bytes{12 * 4 * 4 + 12 * 48 * 2});
constexpr microbatch_shape narrow{.sequences = 1, .tokens = 15, .slices = 3};
static_assert(saved_bytes(grouped.ops[3], narrow) == bytes{5 * 52 * 4 + 48});                         // 1040 bytes in 17 lines
static_assert(saved_bytes(grouped.ops[3], narrow, bf16) == bytes{5 * 4 * 4 + 48 + 5 * 48 * 2 + 32});  // 80 in 2, 480 in 8

// Half a type, half the slots, to the byte where every matrix has whole lines.
constexpr bool halves(layer_description const& layer)
{
    auto const saved = [&](dtype_policy const& policy) {
        bytes sum;
        for (auto const& o : layer.ops) {
            sum += saved_bytes(o, shape, policy);
        }
        return sum;
    };
    std::array const stage{layer};
    return (activation_bytes(std::span{stage}, shape, bf16) - saved(bf16)) * 2 == activation_bytes(std::span{stage}, shape) - saved(fp32) &&
           saved(bf16) == saved(fp32);
}
static_assert(halves(block) && halves(fused(block)) && halves(embedding_layer(small)) && halves(classifier_layer(small)) && halves(grouped));

// What a holder keeps: 26 bytes a parameter in bf16 with a buffer for the reduced gradient, 22 without; committed are the same 12.
static_assert(persistent_bytes(block, bf16) == bytes{7'087'872 * 26} && persistent_bytes(block, bf16, gradient_buffer::none) == bytes{7'087'872 * 22});
static_assert(committed_bytes(block, bf16) == committed_bytes(block));

}  // namespace
