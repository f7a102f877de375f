#pragma once
// SPDX-License-Identifier: Apache-2.0

// The norms of queries and keys, for stage_on_pass.hpp: of the heads that a shard has. The weights are whole in each shard; shards that share a head of keys
// have a part of its gradient each, and so of the weight's.

#include "executor/stage/stage_on.hpp"
#include "kernels/qk_norm/qk_norm.hpp"
#include "rheo/model/op_shapes.hpp"

namespace rheo::inline v0 {

template <class Kernels>
void stage_on<Kernels>::pass::qk_norm_forward(std::size_t j, std::size_t index)
{
    auto const& o = op_of(j, index).own;
    by.qk_norm_forward({.rows = rows(),
                        .heads = o.heads,
                        .kv_heads = kv_heads_of(o),
                        .head_width = head_width(o),
                        .epsilon = epsilon_of(o),
                        .input = slot(j, o.x[0]),
                        .query_gamma = parameter(j, index, 0),
                        .key_gamma = parameter(j, index, 1),
                        .output = slot(j, o.z[0]),
                        .rstd = saved(j, index)});
}

template <class Kernels>
void stage_on<Kernels>::pass::qk_norm_input(std::size_t j, std::size_t index)
{
    auto const& o = op_of(j, index).own;
    by.qk_norm_backward_input({.rows = rows(),
                               .heads = o.heads,
                               .kv_heads = kv_heads_of(o),
                               .head_width = head_width(o),
                               .input = slot(j, o.x[0]),
                               .query_gamma = parameter(j, index, 0),
                               .key_gamma = parameter(j, index, 1),
                               .rstd = saved(j, index),
                               .output_gradient = gradient_of(j, o.z[0]),
                               .input_gradient = gradient_of(j, o.x[0])});
}

template <class Kernels>
void stage_on<Kernels>::pass::qk_norm_weights(std::size_t j, std::size_t index, std::function<bool(use_id)> const& adds)
{
    auto const& o = op_of(j, index).own;
    auto const queries = target(j, index, 0, adds);
    auto const keys = target(j, index, 1, adds);
    if (queries.sums != nullptr || keys.sums != nullptr) {  // a recovery may have kept one of them
        by.qk_norm_backward_weight({.rows = rows(),
                                    .heads = o.heads,
                                    .kv_heads = kv_heads_of(o),
                                    .head_width = head_width(o),
                                    .input = slot(j, o.x[0]),
                                    .rstd = saved(j, index),
                                    .output_gradient = gradient_of(j, o.z[0]),
                                    .query_gradient = queries,
                                    .key_gradient = keys});
    }
}

}  // namespace rheo::inline v0
