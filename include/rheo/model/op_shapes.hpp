#pragma once
// SPDX-License-Identifier: Apache-2.0

// What an operation asks of its layer: how many columns the slots have that it reads and writes, and which shape each of its
// parameters has. The kernels read and write just that, so a layer that declares anything else is rejected (layer_error.hpp).

#include <array>
#include <cstddef>
#include <cstdint>

#include "rheo/model/op.hpp"
#include "rheo/tensor/shape.hpp"

namespace rheo::inline v0 {

/// A parameter as an operation asks for it.
struct wanted_parameter {
    enum class presence : std::uint8_t { none, optional, required } is = presence::none;
    tensor_shape shape{};
    bool any_rows = false;  ///< as many as the layer declares: a table of positions

    friend constexpr bool operator==(wanted_parameter const&, wanted_parameter const&) = default;
};

struct op_shapes {
    std::array<std::int64_t, 2> x{-1, -1};  ///< columns of the slots that it reads; -1: it reads none there
    std::array<std::int64_t, 2> z{-1, -1};  ///< of those that it writes
    std::array<wanted_parameter, 2> parameters{};
    std::int64_t in_width = -1;  ///< that its out_width and its heads ask for; -1: any

    friend constexpr bool operator==(op_shapes const&, op_shapes const&) = default;
};

/// @pre of an attention or a norm of queries and keys: heads >= 1
constexpr op_shapes shapes_of(op const& o)
{
    auto const in = std::int64_t{o.in_width};
    auto const out = std::int64_t{o.out_width};
    using enum wanted_parameter::presence;
    wanted_parameter const row{required, {1, in}};
    switch (o.kind) {
    case op_kind::embedding: return {.z = {out, -1}, .parameters = {{{required, {in, out}}, {optional, {1, out}, true}}}};
    case op_kind::layer_norm: return {.x = {in, -1}, .z = {out, -1}, .parameters = {row, row}, .in_width = out};
    case op_kind::rms_norm: return {.x = {in, -1}, .z = {out, -1}, .parameters = {row, {}}, .in_width = out};
    case op_kind::linear: return {.x = {in, -1}, .z = {out, -1}, .parameters = {{{required, {in, out}}, {optional, {1, out}}}}};
    case op_kind::linear_gelu: return {.x = {in, -1}, .z = {out, out}, .parameters = {{{required, {in, out}}, {optional, {1, out}}}}};
    case op_kind::unembed: return {.x = {in, -1}, .z = {out, -1}, .parameters = {{{required, {out, in}}, {}}}};
    case op_kind::gelu:
    case op_kind::rope: return {.x = {in, -1}, .z = {out, -1}, .in_width = out};
    case op_kind::qk_norm:
        return {.x = {in, -1}, .z = {out, -1}, .parameters = {{{required, {1, head_width(o)}}, {required, {1, head_width(o)}}}}, .in_width = out};
    case op_kind::swiglu: return {.x = {in, -1}, .z = {out, -1}, .in_width = 2 * out};
    case op_kind::attention: return {.x = {in, -1}, .z = {out, -1}, .in_width = out + 2 * (out / o.heads) * kv_heads_of(o)};
    case op_kind::residual_add: return {.x = {in, in}, .z = {out, -1}, .in_width = out};
    case op_kind::residual_norm: return {.x = {in, in}, .z = {out, out}, .parameters = {row, row}, .in_width = out};
    case op_kind::residual_rms_norm: return {.x = {in, in}, .z = {out, out}, .parameters = {row, {}}, .in_width = out};
    case op_kind::cross_entropy:
    case op_kind::loss_gradient: return {.x = {in, -1}};
    }
    return {};
}

/// True when the operation adds its part to the gradient of what it reads; the others write it over, so no operation after them may have read the same.
constexpr bool adds_to_gradient(op_kind kind)
{
    return kind == op_kind::linear || kind == op_kind::linear_gelu || kind == op_kind::unembed || kind == op_kind::layer_norm || kind == op_kind::rms_norm;
}

/// True when the backward reads what the operation wrote into its first slot.
constexpr bool reads_back(op_kind kind)
{
    return kind == op_kind::attention || kind == op_kind::linear_gelu || kind == op_kind::residual_norm || kind == op_kind::residual_rms_norm;
}

constexpr bool is_loss(op_kind kind) { return kind == op_kind::cross_entropy || kind == op_kind::loss_gradient; }

}  // namespace rheo::inline v0
