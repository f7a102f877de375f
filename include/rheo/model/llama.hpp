#pragma once
// SPDX-License-Identifier: Apache-2.0

// The Llama family: token embedding, pre-norm blocks with root-mean-square norms, rotary positions, grouped heads of keys and
// values and a gated MLP, and a classifier tied to the token table or not (Touvron et al.: "LLaMA", 2023, and "Llama 2", 2023;
// Ainslie et al.: "GQA", 2023). Heads may be of any even width (Mistral NeMo), q, k and v may have biases (Qwen2), the only
// ones, and q and k a norm of each head (Qwen3). Parameters have Hugging Face's names, where products of one input are one matrix as
// in its Phi-3 (qkv_proj, gate_up_proj); matrices are [in, out].

#include "rheo/model/gpt.hpp"
#include "rheo/model/layer.hpp"

namespace rheo::inline v0 {

struct llama_shape {
    int vocabulary = 256;
    int context = 128;  ///< longest sequence, in tokens
    int width = 64;
    int heads = 4;
    int kv_heads = 2;  ///< of keys and values, a divisor of heads
    int blocks = 2;
    int mlp_width = 176;
    int rope_base = 10000;
    bool tied = false;             ///< the classifier's weight is the token table
    int head_dim = 0;              ///< width of a head; 0: width / heads
    rope_scaling scaling{};        ///< of the rotary positions
    int norm_epsilon_e9 = 10'000;  ///< of the norms, in 1e-9
    bool qkv_bias = false;         ///< the product that makes q, k and v has a bias
    bool qk_norm = false;          ///< each head of q and of k has a norm, before its position turns it

    friend constexpr bool operator==(llama_shape const&, llama_shape const&) = default;
};

/// How wide its heads are.
constexpr int head_dim_of(llama_shape const& s) { return s.head_dim != 0 ? s.head_dim : s.width / s.heads; }

/// Tokens to vectors: a table row.
constexpr layer_description llama_embedding_layer(llama_shape s)
{
    layer_description layer{.name = "embedding", .prefix = "", .in_width = 0, .out_width = s.width};
    add_slot(layer, 0);
    auto const out = add_slot(layer, s.width);
    auto const table = add_parameter(layer, {"model.embed_tokens.weight", {s.vocabulary, s.width}, {0, 0.02}, true});
    add_op(layer, {.kind = op_kind::embedding, .z = {out, no_slot}, .parameters = {table, no_parameter}, .in_width = s.vocabulary, .out_width = s.width});
    layer.output = out;
    return layer;
}

/// x + attention(turned(norm(x))), then that + mlp(norm(that)).
constexpr layer_description llama_block_layer(llama_shape s)
{
    auto const w = s.width;
    auto const f = s.mlp_width;
    auto const head = head_dim_of(s);
    auto const q = head * s.heads;  // what attention gives
    auto const packed = q + 2 * head * s.kv_heads;
    auto const residual_deviation = 0.02 * detail::inverse_square_root(2.0 * s.blocks);
    layer_description layer{.name = "block", .prefix = "model.layers.#.", .in_width = w, .out_width = w};
    auto const x = add_slot(layer, w);
    auto const n1 = add_slot(layer, w);
    auto const qkv = add_slot(layer, packed);
    auto const turned = s.qk_norm ? add_slot(layer, packed) : qkv;
    auto const mixed = add_slot(layer, q);
    auto const projected = add_slot(layer, w);
    auto const middle = add_slot(layer, w);
    auto const n2 = add_slot(layer, w);
    auto const gates = add_slot(layer, 2 * f);
    auto const gated = add_slot(layer, f);
    auto const down = add_slot(layer, w);
    auto const out = add_slot(layer, w);
    auto const norm1 = add_parameter(layer, {"input_layernorm.weight", {1, w}, {1, 0}, false});
    auto const att = add_parameter(layer, {"self_attn.qkv_proj.weight", {w, packed}, {0, 0.02}, true});
    auto const bias = s.qkv_bias ? add_parameter(layer, {"self_attn.qkv_proj.bias", {1, packed}, {0, 0}, false}) : no_parameter;
    auto const norm_q = s.qk_norm ? add_parameter(layer, {"self_attn.q_norm.weight", {1, head}, {1, 0}, false}) : no_parameter;
    auto const norm_k = s.qk_norm ? add_parameter(layer, {"self_attn.k_norm.weight", {1, head}, {1, 0}, false}) : no_parameter;
    auto const proj = add_parameter(layer, {"self_attn.o_proj.weight", {q, w}, {0, residual_deviation}, true});
    auto const norm2 = add_parameter(layer, {"post_attention_layernorm.weight", {1, w}, {1, 0}, false});
    auto const up = add_parameter(layer, {"mlp.gate_up_proj.weight", {w, 2 * f}, {0, 0.02}, true});
    auto const last = add_parameter(layer, {"mlp.down_proj.weight", {f, w}, {0, residual_deviation}, true});
    detail::add_norm(layer, op_kind::rms_norm, x, n1, norm1, no_parameter, s.norm_epsilon_e9);
    add_op(layer, {.kind = op_kind::linear, .x = {n1, no_slot}, .z = {qkv, no_slot}, .parameters = {att, bias}, .in_width = w, .out_width = packed});
    if (s.qk_norm) {
        add_op(layer, {.kind = op_kind::qk_norm,
                       .x = {qkv, no_slot},
                       .z = {turned, no_slot},
                       .parameters = {norm_q, norm_k},
                       .in_width = packed,
                       .out_width = packed,
                       .heads = s.heads,
                       .kv_heads = s.kv_heads,
                       .epsilon_e9 = s.norm_epsilon_e9});
    }
    add_op(layer, {.kind = op_kind::rope,
                   .x = {turned, no_slot},
                   .z = {turned, no_slot},  // in place: no backward asks for what it turns
                   .in_width = packed,
                   .out_width = packed,
                   .heads = s.heads,
                   .kv_heads = s.kv_heads,
                   .rope_base = s.rope_base,
                   .scaling = s.scaling});
    add_op(layer, {.kind = op_kind::attention,
                   .x = {turned, no_slot},
                   .z = {mixed, no_slot},
                   .in_width = packed,
                   .out_width = q,
                   .heads = s.heads,
                   .kv_heads = s.kv_heads});
    add_op(layer,
           {.kind = op_kind::linear, .x = {mixed, no_slot}, .z = {projected, no_slot}, .parameters = {proj, no_parameter}, .in_width = q, .out_width = w});
    add_op(layer, {.kind = op_kind::residual_add, .x = {x, projected}, .z = {middle, no_slot}, .in_width = w, .out_width = w});
    detail::add_norm(layer, op_kind::rms_norm, middle, n2, norm2, no_parameter, s.norm_epsilon_e9);
    add_op(layer, {.kind = op_kind::linear, .x = {n2, no_slot}, .z = {gates, no_slot}, .parameters = {up, no_parameter}, .in_width = w, .out_width = 2 * f});
    add_op(layer, {.kind = op_kind::swiglu, .x = {gates, no_slot}, .z = {gated, no_slot}, .in_width = 2 * f, .out_width = f});
    add_op(layer, {.kind = op_kind::linear, .x = {gated, no_slot}, .z = {down, no_slot}, .parameters = {last, no_parameter}, .in_width = f, .out_width = w});
    add_op(layer, {.kind = op_kind::residual_add, .x = {middle, down}, .z = {out, no_slot}, .in_width = w, .out_width = w});
    layer.output = out;
    return layer;
}

/// Last norm, logits, cross entropy.
constexpr layer_description llama_classifier_layer(llama_shape s)
{
    layer_description layer{.name = "classifier", .prefix = "", .in_width = s.width, .out_width = 0};
    auto const x = add_slot(layer, s.width);
    auto const normed = add_slot(layer, s.width);
    auto const logits = add_slot(layer, s.vocabulary);
    auto const norm = add_parameter(layer, {"model.norm.weight", {1, s.width}, {1, 0}, false});
    auto const weight = add_parameter(layer, {s.tied ? "model.embed_tokens.weight" : "lm_head.weight", {s.vocabulary, s.width}, {0, 0.02}, true});
    detail::add_norm(layer, op_kind::rms_norm, x, normed, norm, no_parameter, s.norm_epsilon_e9);
    add_op(layer, {.kind = op_kind::unembed,
                   .x = {normed, no_slot},
                   .z = {logits, no_slot},
                   .parameters = {weight, no_parameter},
                   .in_width = s.width,
                   .out_width = s.vocabulary});
    add_op(layer, {.kind = op_kind::cross_entropy, .x = {logits, no_slot}, .in_width = s.vocabulary});
    return layer;
}

template <llama_shape Shape>
struct llama_embedding {
    static constexpr layer_description describe() { return llama_embedding_layer(Shape); }
};

template <llama_shape Shape>
struct llama_block {
    static constexpr layer_description describe() { return llama_block_layer(Shape); }
};

template <llama_shape Shape>
struct llama_classifier {
    static constexpr layer_description describe() { return llama_classifier_layer(Shape); }
};

}  // namespace rheo::inline v0
