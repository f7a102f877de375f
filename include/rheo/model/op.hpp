#pragma once
// SPDX-License-Identifier: Apache-2.0

// An operation of a layer as a value. Operations read and write the layer's slots (matrices of `rows`
// of the microbatch x the slot's width) and use the layer's parameters; slot 0 is the layer's input.
// The value says all the library must know (what it costs, what it saves, which uses it makes); the
// kernels of the same name do the work. `id` is the place in the unfused list and keys the random
// numbers, so that fusing, cutting and slicing change none of them.

#include <array>
#include <cstdint>
#include <string_view>

#include "rheo/model/rope_scaling.hpp"
#include "rheo/tensor/shape.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

enum class op_kind : std::uint8_t {
    embedding,          ///< tokens -> z[0]: token table, + position table where there is one, dropout
    layer_norm,         ///< x[0] -> z[0]
    linear,             ///< x[0] -> z[0]: x W + bias
    gelu,               ///< x[0] -> z[0]
    attention,          ///< x[0] (q, k, v side by side) -> z[0]: causal, many heads, fewer of k and v or as many, dropout on probabilities
    residual_add,       ///< x[0] + dropout(x[1]) -> z[0]
    unembed,            ///< x[0] -> z[0]: logits, x W^T
    cross_entropy,      ///< x[0] and targets -> loss
    linear_gelu,        ///< fused: x[0] -> z[0] before, z[1] after the activation
    residual_norm,      ///< fused: x[0] + dropout(x[1]) -> z[0], its norm -> z[1]
    loss_gradient,      ///< fused: cross_entropy that leaves its gradient in place of the logits
    rms_norm,           ///< x[0] -> z[0]
    rope,               ///< x[0] (q, k, v side by side) -> z[0], which may be x[0]: queries and keys turned by their positions
    swiglu,             ///< x[0] (gate and value side by side) -> z[0]
    residual_rms_norm,  ///< fused: x[0] + dropout(x[1]) -> z[0], its norm -> z[1]
    qk_norm,            ///< x[0] (q, k, v side by side) -> z[0]: each head of q and of k normed by its root mean square, v as it is
};

inline constexpr int no_slot = -1;
inline constexpr int no_parameter = -1;

struct op {
    op_kind kind{};
    op_id id{};
    std::array<int, 2> x{no_slot, no_slot};                     ///< slots read
    std::array<int, 2> z{no_slot, no_slot};                     ///< slots written
    std::array<int, 2> parameters{no_parameter, no_parameter};  ///< of the layer's list
    int in_width = 0;
    int out_width = 0;
    int heads = 0;
    int dropout_per_mille = 0;
    int kv_heads = 0;         ///< of keys and values; 0: as many as heads
    int rope_base = 0;        ///< of a rope: its slowest pair turns by almost 1 / rope_base a position
    rope_scaling scaling{};   ///< of a rope
    int epsilon_e9 = 10'000;  ///< of a norm, in 1e-9: added to the mean square

    friend constexpr bool operator==(op const&, op const&) = default;
};

/// The operation's name: that of its kernel folder, except that unembed is a linear with W transposed.
constexpr std::string_view name_of(op_kind kind)
{
    constexpr std::string_view names[] = {"embedding",         "layer_norm",  "linear",        "gelu",          "attention", "residual_add", "unembed",
                                          "cross_entropy",     "linear_gelu", "residual_norm", "loss_gradient", "rms_norm",  "rope",         "swiglu",
                                          "residual_rms_norm", "qk_norm"};
    return names[static_cast<std::size_t>(kind)];
}

/// True when the operation writes its result over what it reads, forward, and backward the gradient likewise.
constexpr bool is_in_place(op const& o) { return o.x[0] != no_slot && o.x[0] == o.z[0]; }

/// What a norm adds to the mean square. 10'000 / 1e9 is the double 1e-5.
constexpr double epsilon_of(op const& o) { return o.epsilon_e9 / 1e9; }
static_assert(op{}.epsilon_e9 / 1e9 == 1e-5);

/// True when what the operation saves is of each head, and so each shard's own.
constexpr bool saves_by_head(op_kind kind) { return kind == op_kind::attention || kind == op_kind::qk_norm; }

/// The heads of keys and values.
constexpr int kv_heads_of(op const& o) { return o.kv_heads == 0 ? o.heads : o.kv_heads; }

/// How wide the heads of a rope, an attention or a norm of queries and keys are.
constexpr int head_width(op const& o) { return o.in_width / (o.heads + 2 * kv_heads_of(o)); }

/// Elements that an operation keeps for its backward beside the slots, by the type that a dtype policy gives them.
struct saved_elements {
    std::int64_t computed = 0;  ///< of the type that arithmetic is done in
    std::int64_t stored = 0;    ///< of the type of slots

    friend constexpr bool operator==(saved_elements, saved_elements) = default;
};

/// What the operation keeps, per microbatch or slice of one.
constexpr saved_elements saved_by(op const& o, microbatch_shape shape)
{
    switch (o.kind) {
    case op_kind::layer_norm:
    case op_kind::residual_norm: return {2 * rows(shape)};  // mean and 1/deviation of each row
    case op_kind::attention:                                // log-sum-exp of each query; gradients of keys and values from later slices
        return {o.heads * rows(shape), shape.slices > 1 ? (o.in_width - o.out_width) * rows(shape) : 0};
    case op_kind::qk_norm: return {(o.heads + kv_heads_of(o)) * rows(shape)};  // 1/root of each head of q and k and row
    case op_kind::rms_norm:
    case op_kind::residual_rms_norm:                    // 1/root of the mean square of each row
    case op_kind::cross_entropy: return {rows(shape)};  // log-sum-exp of each row
    default: return {};
    }
}

/// Floating-point operations of the forward pass (matrix products only; the rest is memory-bound).
constexpr flops forward_flops(op const& o, microbatch_shape shape)
{
    auto const in = std::int64_t{o.in_width};
    auto const out = std::int64_t{o.out_width};
    switch (o.kind) {
    case op_kind::linear:
    case op_kind::linear_gelu:
    case op_kind::unembed: return {2 * rows(shape) * in * out};
    case op_kind::attention: return {2 * rows(shape) * (shape.tokens + 1) * out};  // two products, half masked; of a slice: the mean
    default: return {0};
    }
}

/// Both gradients: each costs what the forward pass costs; attention computes its scores once more.
constexpr flops backward_flops(op const& o, microbatch_shape shape)
{
    auto const forward = forward_flops(o, shape).count;
    return {o.kind == op_kind::attention ? forward * 5 / 2 : forward * 2};
}

}  // namespace rheo::inline v0
