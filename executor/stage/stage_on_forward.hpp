#pragma once
// SPDX-License-Identifier: Apache-2.0

// The operations of a layer forward, for stage_on_pass.hpp.

#include "executor/stage/stage_on.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/gelu/gelu.hpp"
#include "kernels/residual_add/residual_add.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/swiglu/swiglu.hpp"

namespace rheo::inline v0 {

template <class Kernels>
void stage_on<Kernels>::pass::forward(std::size_t index, loss_sum& loss)
{
    auto const& o = description().ops[index];
    switch (o.kind) {
    case op_kind::embedding:
        by.embedding_forward({.batch = self.shape_.sequences,
                              .length = tokens(),
                              .first = first_token(),
                              .width = o.out_width,
                              .vocabulary = o.in_width,
                              .tokens = a.tokens.data(),
                              .token_table = parameter(index, 0),
                              .position_table = parameter(index, 1),
                              .drop = drop(o),
                              .output = slot(o.z[0])});
        break;
    case op_kind::layer_norm:
    case op_kind::rms_norm:
    case op_kind::residual_norm:
    case op_kind::residual_rms_norm: norm_forward(index); break;
    case op_kind::rope: rope(o, slot(o.x[0]), slot(o.z[0]), false); break;
    case op_kind::swiglu: by.swiglu_forward({.rows = rows(), .width = o.out_width, .input = slot(o.x[0]), .output = slot(o.z[0])}); break;
    case op_kind::residual_add:
        by.residual_add_forward({.rows = rows(), .width = o.in_width, .stream = slot(o.x[0]), .branch = slot(o.x[1]), .drop = drop(o), .output = slot(o.z[0])});
        break;
    case op_kind::linear:
    case op_kind::linear_gelu:
        by.linear_forward({.rows = rows(),
                           .in = o.in_width,
                           .out = o.out_width,
                           .input = slot(o.x[0]),
                           .weight = parameter(index, 0),
                           .bias = parameter(index, 1),
                           .output = slot(o.z[0]),
                           .activated = o.kind == op_kind::linear_gelu ? slot(o.z[1]) : nullptr});
        break;
    case op_kind::unembed:
        by.linear_forward({.rows = rows(),
                           .in = o.in_width,
                           .out = o.out_width,
                           .order = weight_order::out_in,
                           .input = slot(o.x[0]),
                           .weight = parameter(index, 0),
                           .output = slot(o.z[0])});
        break;
    case op_kind::gelu: by.gelu_forward({.count = rows() * o.in_width, .input = slot(o.x[0]), .output = slot(o.z[0])}); break;
    case op_kind::attention:
        by.attention_forward({.batch = self.shape_.sequences,
                              .length = tokens(),
                              .width = o.out_width,
                              .heads = o.heads,
                              .kv_heads = o.kv_heads,
                              .qkv = slot(o.x[0]),
                              .before = keys_before(index),
                              .whole = self.shape_.tokens,
                              .drop = drop(o),
                              .output = slot(o.z[0]),
                              .log_sum_exp = saved(index)});
        break;
    case op_kind::cross_entropy:
    case op_kind::loss_gradient:
        if (item.training && o.kind == op_kind::loss_gradient) {
            by.cross_entropy_fused({.rows = rows(), .vocabulary = o.in_width, .logits = slot(o.x[0]), .targets = a.targets.data(), .loss = &loss});
        } else {
            by.cross_entropy_forward({.rows = rows(),
                                      .vocabulary = o.in_width,
                                      .logits = slot(o.x[0]),
                                      .targets = a.targets.data(),
                                      .log_sum_exp = o.kind == op_kind::cross_entropy ? saved(index) : nullptr,
                                      .loss = &loss});
        }
        break;
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::recompute_dropped()
{
    for (auto const index : self.recomputed_ops_[layer]) {
        auto const& o = description().ops[index];
        bool const only_activation = o.kind == op_kind::linear_gelu && self.layout_.dropped[layer][static_cast<std::size_t>(o.z[0])] == 0;
        if (only_activation) {
            by.gelu_forward({.count = rows() * o.out_width, .input = slot(o.z[0]), .output = slot(o.z[1])});
        } else {
            forward(index, self.counted_already_);
        }
    }
}

template <class Kernels>
earlier_slices<typename Kernels::storage const> stage_on<Kernels>::pass::keys_before(std::size_t index) const
{
    auto const qkv = self.layout_.slots[layer][static_cast<std::size_t>(description().ops[index].x[0])];
    earlier_slices<storage const> before{.count = item.slice};
    for (std::size_t s = 0; s < a.before.size(); ++s) {
        expects(!a.before[s]->memory.empty(), "the slices before an item are kept as long as the item");
        before.of[s] = at_offset<storage>(a.before[s]->memory, qkv);
    }
    return before;
}

template <class Kernels>
void stage_on<Kernels>::pass::rope(op const& o, storage const* from, storage* to, bool back)
{
    auto const kept = o.kv_heads == 0 ? o.heads : o.kv_heads;
    by.rope({.rows = rows(),
             .length = tokens(),
             .first = first_token(),
             .turned = o.heads + kept,
             .kept = kept,
             .head_width = head_width(o),
             .table = self.turns_.at({head_width(o), o.rope_base}).data(),
             .input = from,
             .output = to,
             .back = back});
}

}  // namespace rheo::inline v0
