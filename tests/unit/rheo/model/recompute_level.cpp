// SPDX-License-Identifier: Apache-2.0
// What a layer can drop, against counts by thought and against a replay of the layer's operations. The compiler decides all of it.
#include "rheo/model/recompute_level.hpp"

#include <vector>

#include "rheo/model/model.hpp"
#include "well_formed.hpp"

using namespace rheo;
using test::gpt2_124m;
using test::small;

namespace {

constexpr microbatch_shape shape{.sequences = 4, .tokens = 64};
constexpr std::int64_t r = 256;
constexpr std::int64_t w = 768;
constexpr auto block = block_layer(gpt2_124m);
constexpr llama_shape grouped{.vocabulary = 64, .context = 64, .width = 64, .heads = 4, .kv_heads = 2, .blocks = 2, .mlp_width = 176};
constexpr auto llama = llama_block_layer(grouped);

// A GPT's block: two norms, the residual sum between, and what GELU gives, 7 of its 19 widths. A Llama's: what SwiGLU gives besides, but no GELU;
// its queries and keys are rotated in place, where a product would have to give them again.
static_assert(dropped_bytes(block, shape, recompute_level::cheap) == bytes{4 * r * 7 * w});
static_assert(dropped_bytes(llama, shape, recompute_level::cheap, bf16) == bytes{2 * r * (3 * 64 + 176)});
// All: the same without input and output, with the numbers of rows.
static_assert(dropped_bytes(block, shape, recompute_level::full) == activation_bytes(block, shape) - bytes{4 * r * 2 * w});
static_assert(dropped_bytes(block, shape, recompute_level::full, bf16) == activation_bytes(block, shape, bf16) - bytes{2 * r * 2 * w});
static_assert(recompute_flops(block, shape, recompute_level::full) == forward_flops(block, shape) &&
              recompute_flops(block, shape, recompute_level::cheap) == flops{});

// Fusing changes neither.
static_assert(dropped_bytes(fused(block), shape, recompute_level::cheap) == dropped_bytes(block, shape, recompute_level::cheap));
static_assert(dropped_bytes(fused(llama), shape, recompute_level::cheap) == dropped_bytes(llama, shape, recompute_level::cheap));

// But where what is stored is rounded, a fused product's activation stays: it may be of the sum before it was rounded.
static_assert(dropped_bytes(fused(block), shape, recompute_level::cheap, bf16) == bytes{2 * r * 3 * w} &&
              dropped_bytes(block, shape, recompute_level::cheap, bf16) == bytes{2 * r * 7 * w});
static_assert(dropped_bytes(fused(llama), shape, recompute_level::cheap, bf16) == dropped_bytes(llama, shape, recompute_level::cheap, bf16));

/// The block with its rotation not in place, or of what a norm wrote.
constexpr layer_description turning(bool in_place, bool of_product)
{
    layer_description layer{.name = "turning", .prefix = "t.#.", .in_width = 96, .out_width = 96, .output = 2};
    auto const first = add_slot(layer, 96) + 1;
    add_slot(layer, 96);
    add_slot(layer, 96);
    auto const turned = in_place ? first : add_slot(layer, 96);
    auto const weight = add_parameter(layer, of_product ? parameter{"w", {96, 96}, {0, 0.02}, true} : parameter{"w", {1, 96}, {1, 0}, false});
    add_op(layer, {.kind = of_product ? op_kind::linear : op_kind::rms_norm,
                   .x = {0, no_slot},
                   .z = {first, no_slot},
                   .parameters = {weight, no_parameter},
                   .in_width = 96,
                   .out_width = 96});
    add_op(
        layer,
        {.kind = op_kind::rope, .x = {first, no_slot}, .z = {turned, no_slot}, .in_width = 96, .out_width = 96, .heads = 2, .kv_heads = 2, .rope_base = 100});
    add_op(layer, {.kind = op_kind::gelu, .x = {turned, no_slot}, .z = {2, no_slot}, .in_width = 96, .out_width = 96});
    return layer;
}
static_assert(error_of(turning(true, true)).empty() && error_of(turning(false, false)).empty());
static_assert(dropped_bytes(turning(false, true), shape, recompute_level::cheap) == bytes{4 * r * 96} &&
              dropped_bytes(turning(true, true), shape, recompute_level::cheap) == bytes{});
static_assert(dropped_bytes(turning(false, false), shape, recompute_level::cheap) == bytes{4 * r * 2 * 96} &&
              dropped_bytes(turning(true, false), shape, recompute_level::cheap) == bytes{4 * r * 96});

/// Operations that run again.
constexpr int running(layer_description const& layer, recompute_level how, dtype_policy const& policy = fp32)
{
    int count = 0;
    for (auto const& o : layer.ops) {
        count += is_recomputed(layer, o, shape, how, policy) ? 1 : 0;
    }
    return count;
}
// Of a block's eight fused operations: norm, sum with norm, GELU; whole: all but the last sum, whose result is the output.
static_assert(running(fused(block), recompute_level::none) == 0 && running(fused(block), recompute_level::cheap) == 3 &&
              running(fused(block), recompute_level::cheap, bf16) == 2);
// In place of what comes back, a rotation comes behind it; in place of what stays, never again.
static_assert(running(turning(true, false), recompute_level::cheap) == 2 && running(turning(true, true), recompute_level::cheap) == 0);
static_assert(running(fused(block), recompute_level::full) == static_cast<int>(fused(block).ops.size()) - 1);
static_assert(running(embedding_layer(gpt2_124m), recompute_level::full) == 0 && running(fused(classifier_layer(gpt2_124m)), recompute_level::full) == 3);

// An embedding drops nothing: its output stays. A classifier drops its norm, as a whole the logits, too.
static_assert(dropped_bytes(embedding_layer(gpt2_124m), shape, recompute_level::full) == bytes{});
static_assert(dropped_bytes(classifier_layer(gpt2_124m), shape, recompute_level::cheap) == bytes{4 * r * w});
static_assert(dropped_bytes(fused(classifier_layer(gpt2_124m)), shape, recompute_level::full) == bytes{4 * (r * (w + 50257) + 2 * r)});

/// Every cheap slot can be written again: run over the operations in their order, those without products alone find what they read in
/// slots that stay or that have been written again, and in the end all slots are there.
constexpr bool comes_back(layer_description const& layer, microbatch_shape of)
{
    std::vector<bool> there(layer.slot_widths.size());
    for (std::size_t s = 0; s < there.size(); ++s) {
        there[s] = !is_dropped(layer, static_cast<int>(s), of, recompute_level::cheap);
    }
    for (auto const& o : layer.ops) {
        bool wants = false;
        for (auto const z : o.z) {
            wants = wants || (z != no_slot && !there[static_cast<std::size_t>(z)]);
        }
        if (!wants) {
            continue;
        }
        bool const only_activation = o.kind == op_kind::linear_gelu && there[static_cast<std::size_t>(o.z[0])];
        if (forward_flops(o, of) > flops{} && !only_activation) {
            return false;
        }
        for (auto const x : o.x) {
            if (x != no_slot && !there[static_cast<std::size_t>(x)]) {
                return false;
            }
        }
        for (auto const z : o.z) {
            if (z != no_slot) {
                there[static_cast<std::size_t>(z)] = true;
            }
        }
    }
    for (bool const one : there) {
        if (!one) {
            return false;
        }
    }
    return true;
}
static_assert(comes_back(block, shape) && comes_back(fused(block), shape) && comes_back(llama, shape) && comes_back(fused(llama), shape));
static_assert(comes_back(classifier_layer(small), shape) && comes_back(fused(classifier_layer(small)), shape) &&
              comes_back(llama_classifier_layer(grouped), shape));

/// It is as much as can be: another slot that an operation wrote would need a product, or is the output.
constexpr bool drops_no_less(layer_description const& layer)
{
    for (auto const& o : layer.ops) {
        bool const product = forward_flops(o, shape) > flops{} || o.kind == op_kind::embedding;
        for (auto const z : o.z) {
            if (z != no_slot && z != layer.output && !product && !is_in_place(o) && !is_dropped(layer, z, shape, recompute_level::cheap)) {
                return false;
            }
        }
    }
    return true;
}
static_assert(drops_no_less(block) && drops_no_less(fused(block)) && drops_no_less(llama) && drops_no_less(fused(llama)));

// Later slices attend to the rotated keys and values, which stay; a GPT's qkv is a product's, so it drops the same.
constexpr microbatch_shape cut{.sequences = 4, .tokens = 256, .slices = 4};
static_assert(dropped_bytes(llama, cut, recompute_level::cheap, bf16) == bytes{2 * r * (3 * 64 + 176)} && comes_back(llama, cut));
static_assert(dropped_bytes(block, cut, recompute_level::cheap) == bytes{4 * r * 7 * w});

}  // namespace
