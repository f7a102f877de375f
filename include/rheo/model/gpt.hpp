#pragma once
// SPDX-License-Identifier: Apache-2.0

// The GPT-2 family: token and position embedding, pre-norm transformer blocks with a GELU MLP, and a
// classifier tied to the token table or not (Radford et al., "Language Models are Unsupervised
// Multitask Learners", 2019). Each layer is there as a function of a run-time shape and as a type over
// a constexpr shape; both give the same value. Parameters have Hugging Face's names and shapes.

#include <cstdint>

#include "rheo/model/layer.hpp"

namespace rheo::inline v0 {

struct gpt_shape {
    int vocabulary = 256;
    int context = 128;  ///< longest sequence, in tokens
    int width = 64;
    int heads = 4;
    int blocks = 2;
    int dropout_per_mille = 0;
    bool tied = true;              ///< the classifier's weight is the token table
    int norm_epsilon_e9 = 10'000;  ///< of the norms, in 1e-9

    friend constexpr bool operator==(gpt_shape const&, gpt_shape const&) = default;
};

namespace detail {

/// 1/sqrt(x) by Newton's method: a constexpr stand-in for std::sqrt, exact enough for initial values
/// and the same on every machine.
constexpr double inverse_square_root(double x)
{
    double root = x > 1 ? x : 1;
    for (int i = 0; i < 64; ++i) {
        root = 0.5 * (root + x / root);
    }
    return 1 / root;
}

constexpr int add_norm_parameters(layer_description& layer, int width, std::string_view weight, std::string_view bias)
{
    auto const first = add_parameter(layer, {weight, {1, width}, {1, 0}, false});
    add_parameter(layer, {bias, {1, width}, {0, 0}, false});
    return first;
}

constexpr int add_linear_parameters(layer_description& layer, tensor_shape shape, double deviation, std::string_view weight, std::string_view bias)
{
    auto const first = add_parameter(layer, {weight, shape, {0, deviation}, true});
    add_parameter(layer, {bias, {1, shape.columns}, {0, 0}, false});
    return first;
}

/// A norm of slot x in slot z. @param beta no_parameter for a kind that has none
constexpr void add_norm(layer_description& layer, op_kind kind, int x, int z, int gamma, int beta, int epsilon_e9)
{
    auto const width = layer.slot_widths[static_cast<std::size_t>(x)];
    add_op(layer,
           {.kind = kind, .x = {x, no_slot}, .z = {z, no_slot}, .parameters = {gamma, beta}, .in_width = width, .out_width = width, .epsilon_e9 = epsilon_e9});
}

}  // namespace detail

/// Tokens to vectors: the sum of two table rows, then dropout.
constexpr layer_description embedding_layer(gpt_shape s)
{
    layer_description layer{.name = "embedding", .prefix = "", .in_width = 0, .out_width = s.width};
    add_slot(layer, 0);
    auto const out = add_slot(layer, s.width);
    auto const table = add_parameter(layer, {"wte.weight", {s.vocabulary, s.width}, {0, 0.02}, true});
    auto const positions = add_parameter(layer, {"wpe.weight", {s.context, s.width}, {0, 0.02}, true});
    add_op(layer, {.kind = op_kind::embedding,
                   .z = {out, no_slot},
                   .parameters = {table, positions},
                   .in_width = s.vocabulary,
                   .out_width = s.width,
                   .dropout_per_mille = s.dropout_per_mille});
    layer.output = out;
    return layer;
}

/// x + attention(norm(x)), then that + mlp(norm(that)).
constexpr layer_description block_layer(gpt_shape s)
{
    auto const w = s.width;
    auto const residual_deviation = 0.02 * detail::inverse_square_root(2.0 * s.blocks);
    layer_description layer{.name = "block", .prefix = "h.#.", .in_width = w, .out_width = w};
    auto const x = add_slot(layer, w);
    auto const n1 = add_slot(layer, w);
    auto const qkv = add_slot(layer, 3 * w);
    auto const mixed = add_slot(layer, w);
    auto const projected = add_slot(layer, w);
    auto const middle = add_slot(layer, w);
    auto const n2 = add_slot(layer, w);
    auto const before = add_slot(layer, 4 * w);
    auto const after = add_slot(layer, 4 * w);
    auto const down = add_slot(layer, w);
    auto const out = add_slot(layer, w);
    auto const ln1 = detail::add_norm_parameters(layer, w, "ln_1.weight", "ln_1.bias");
    auto const att = detail::add_linear_parameters(layer, {w, 3 * w}, 0.02, "attn.c_attn.weight", "attn.c_attn.bias");
    auto const proj = detail::add_linear_parameters(layer, {w, w}, residual_deviation, "attn.c_proj.weight", "attn.c_proj.bias");
    auto const ln2 = detail::add_norm_parameters(layer, w, "ln_2.weight", "ln_2.bias");
    auto const fc = detail::add_linear_parameters(layer, {w, 4 * w}, 0.02, "mlp.c_fc.weight", "mlp.c_fc.bias");
    auto const fc2 = detail::add_linear_parameters(layer, {4 * w, w}, residual_deviation, "mlp.c_proj.weight", "mlp.c_proj.bias");
    auto const drop = s.dropout_per_mille;
    detail::add_norm(layer, op_kind::layer_norm, x, n1, ln1, ln1 + 1, s.norm_epsilon_e9);
    add_op(layer, {.kind = op_kind::linear, .x = {n1, no_slot}, .z = {qkv, no_slot}, .parameters = {att, att + 1}, .in_width = w, .out_width = 3 * w});
    add_op(layer, {.kind = op_kind::attention,
                   .x = {qkv, no_slot},
                   .z = {mixed, no_slot},
                   .in_width = 3 * w,
                   .out_width = w,
                   .heads = s.heads,
                   .dropout_per_mille = drop});
    add_op(layer, {.kind = op_kind::linear, .x = {mixed, no_slot}, .z = {projected, no_slot}, .parameters = {proj, proj + 1}, .in_width = w, .out_width = w});
    add_op(layer, {.kind = op_kind::residual_add, .x = {x, projected}, .z = {middle, no_slot}, .in_width = w, .out_width = w, .dropout_per_mille = drop});
    detail::add_norm(layer, op_kind::layer_norm, middle, n2, ln2, ln2 + 1, s.norm_epsilon_e9);
    add_op(layer, {.kind = op_kind::linear, .x = {n2, no_slot}, .z = {before, no_slot}, .parameters = {fc, fc + 1}, .in_width = w, .out_width = 4 * w});
    add_op(layer, {.kind = op_kind::gelu, .x = {before, no_slot}, .z = {after, no_slot}, .in_width = 4 * w, .out_width = 4 * w});
    add_op(layer, {.kind = op_kind::linear, .x = {after, no_slot}, .z = {down, no_slot}, .parameters = {fc2, fc2 + 1}, .in_width = 4 * w, .out_width = w});
    add_op(layer, {.kind = op_kind::residual_add, .x = {middle, down}, .z = {out, no_slot}, .in_width = w, .out_width = w, .dropout_per_mille = drop});
    layer.output = out;
    return layer;
}

/// Last norm, logits, cross entropy.
constexpr layer_description classifier_layer(gpt_shape s)
{
    layer_description layer{.name = "classifier", .prefix = "", .in_width = s.width, .out_width = 0};
    auto const x = add_slot(layer, s.width);
    auto const normed = add_slot(layer, s.width);
    auto const logits = add_slot(layer, s.vocabulary);
    auto const norm = detail::add_norm_parameters(layer, s.width, "ln_f.weight", "ln_f.bias");
    auto const weight = add_parameter(layer, {s.tied ? "wte.weight" : "lm_head.weight", {s.vocabulary, s.width}, {0, 0.02}, true});
    detail::add_norm(layer, op_kind::layer_norm, x, normed, norm, norm + 1, s.norm_epsilon_e9);
    add_op(layer, {.kind = op_kind::unembed,
                   .x = {normed, no_slot},
                   .z = {logits, no_slot},
                   .parameters = {weight, no_parameter},
                   .in_width = s.width,
                   .out_width = s.vocabulary});
    add_op(layer, {.kind = op_kind::cross_entropy, .x = {logits, no_slot}, .in_width = s.vocabulary});
    return layer;
}

template <gpt_shape Shape>
struct embedding {
    static constexpr layer_description describe() { return embedding_layer(Shape); }
};

template <gpt_shape Shape>
struct transformer_block {
    static constexpr layer_description describe() { return block_layer(Shape); }
};

template <gpt_shape Shape>
struct classifier {
    static constexpr layer_description describe() { return classifier_layer(Shape); }
};

}  // namespace rheo::inline v0
