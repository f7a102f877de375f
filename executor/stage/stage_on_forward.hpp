#pragma once
// SPDX-License-Identifier: Apache-2.0

// The operations of a layer forward, for stage_on_pass.hpp: of each shard on what it has. On a grid of one an operation has
// all rows and all columns.

#include "executor/stage/stage_on.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/gelu/gelu.hpp"
#include "kernels/residual_add/residual_add.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/swiglu/swiglu.hpp"

namespace rheo::inline v0 {

template <class Kernels>
void stage_on<Kernels>::pass::forward(std::size_t index, std::span<loss_sum> losses)
{
    auto const& first = op_of(0, index);
    if (first.kind != shard_op_kind::operation) {
        return exchange(index);
    }
    bool const is_loss = first.own.kind == op_kind::cross_entropy || first.own.kind == op_kind::loss_gradient;
    if (is_loss && grid() > 1) {
        return loss_of_shards(index, losses, item.training && first.own.kind == op_kind::loss_gradient);
    }
    for (std::size_t j = 0; j < shards(); ++j) {
        operate(j, index, losses);
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::operate(std::size_t j, std::size_t index, std::span<loss_sum> losses)
{
    auto const& [kind, o, column, part, count, positions] = op_of(j, index);
    if (!item.runs.empty() && operate_on_runs(o, index)) {
        return;
    }
    switch (o.kind) {
    case op_kind::embedding:
        by.embedding_forward({.batch = self.shape_.sequences,
                              .length = tokens(),
                              .first = first_token(),
                              .width = o.out_width,
                              .vocabulary = grid() == 1 ? o.in_width : count,
                              .tokens = a.tokens.data(),
                              .token_table = parameter(j, index, 0),
                              .position_table = parameter(j, index, 1),
                              .drop = drop(o, 0),
                              .output = slot(j, o.z[0]),
                              .token_begin = part.begin,
                              .token_end = part.end});
        break;
    case op_kind::layer_norm:
    case op_kind::rms_norm:
    case op_kind::residual_norm:
    case op_kind::residual_rms_norm: norm_forward(j, index); break;
    case op_kind::qk_norm: qk_norm_forward(j, index); break;
    case op_kind::rope: rope(o, slot(j, o.x[0]), slot(j, o.z[0]), false); break;
    case op_kind::swiglu: by.swiglu_forward({.rows = rows(), .width = o.out_width, .input = slot(j, o.x[0]), .output = slot(j, o.z[0])}); break;
    case op_kind::residual_add:
        if (auto const [begin, end] = strip(j); begin < end) {
            by.residual_add_forward({.rows = end - begin,
                                     .width = o.in_width,
                                     .stream = strip_of(j, o.x[0]),
                                     .branch = strip_of(j, o.x[1]),
                                     .drop = drop(o, begin),
                                     .output = strip_of(j, o.z[0])});
        }
        break;
    case op_kind::linear:
    case op_kind::linear_gelu: linear_forward(j, index, weight_order::in_out); break;
    case op_kind::unembed: linear_forward(j, index, weight_order::out_in); break;
    case op_kind::gelu: by.gelu_forward({.count = rows() * o.in_width, .input = slot(j, o.x[0]), .output = slot(j, o.z[0])}); break;
    case op_kind::attention:
        by.attention_forward({.batch = self.shape_.sequences,
                              .length = tokens(),
                              .width = o.out_width,
                              .heads = o.heads,
                              .kv_heads = o.kv_heads,
                              .qkv = slot(j, o.x[0]),
                              .before = keys_before(j, index),
                              .whole = self.shape_.tokens,
                              .drop = drop(o, 0),
                              .first_head = part.begin,
                              .all_heads = count,
                              .output = slot(j, o.z[0]),
                              .log_sum_exp = saved(j, index)});
        break;
    case op_kind::cross_entropy:
    case op_kind::loss_gradient:
        if (item.training && o.kind == op_kind::loss_gradient) {
            by.cross_entropy_fused({.rows = rows(), .vocabulary = o.in_width, .logits = slot(j, o.x[0]), .targets = a.targets.data(), .loss = losses.data()});
        } else {
            by.cross_entropy_forward({.rows = rows(),
                                      .vocabulary = o.in_width,
                                      .logits = slot(j, o.x[0]),
                                      .targets = a.targets.data(),
                                      .log_sum_exp = o.kind == op_kind::cross_entropy ? saved(j, index) : nullptr,
                                      .loss = losses.data()});
        }
        break;
    }
}

/// All columns, the shard's columns of a slot, or a part of a sum over shards.
template <class Kernels>
void stage_on<Kernels>::pass::linear_forward(std::size_t j, std::size_t index, weight_order order)
{
    auto const& o = op_of(j, index);
    bool const is_partial = form(o.own.z[0]) == slot_form::partial;
    auto const width = all().width(j, o.own.z[0]);
    by.linear_forward({.rows = rows(),
                       .in = o.own.in_width,
                       .out = o.own.out_width,
                       .order = order,
                       .input = slot(j, o.own.x[0]),
                       .weight = parameter(j, index, 0),
                       .bias = parameter(j, index, 1),
                       .output = is_partial ? nullptr : slot(j, o.own.z[0]) + o.column,
                       .activated = o.own.kind == op_kind::linear_gelu ? slot(j, o.own.z[1]) + o.column : nullptr,
                       .partial = is_partial ? partial(j, o.own.out_width) : nullptr,
                       .output_row = is_partial || width == o.own.out_width ? 0 : width});
}

template <class Kernels>
void stage_on<Kernels>::pass::recompute_dropped()
{
    for (auto const index : self.recomputed_ops_[layer]) {
        auto const& first = op_of(0, index).own;
        bool const only_activation = first.kind == op_kind::linear_gelu && places().dropped[static_cast<std::size_t>(first.z[0])] == 0;
        if (!only_activation) {
            forward(index, std::span{&self.counted_already_, 1});
            continue;
        }
        for (std::size_t j = 0; j < shards(); ++j) {
            auto const& o = op_of(j, index).own;
            by.gelu_forward({.count = rows() * o.out_width, .input = slot(j, o.z[0]), .output = slot(j, o.z[1])});
        }
    }
}

template <class Kernels>
earlier_slices<typename Kernels::storage const> stage_on<Kernels>::pass::keys_before(std::size_t j, std::size_t index) const
{
    auto const qkv = places().slots[j][static_cast<std::size_t>(op_of(j, index).own.x[0])];
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
    auto const kept = kv_heads_of(o);
    by.rope({.rows = rows(),
             .length = tokens(),
             .first = first_token(),
             .turned = o.heads + kept,
             .kept = kept,
             .head_width = head_width(o),
             .table = self.turns_.at(turns_key(o)).data(),
             .input = from,
             .output = to,
             .back = back});
}

}  // namespace rheo::inline v0
