#pragma once
// SPDX-License-Identifier: Apache-2.0

// For stage_on_pass.hpp: the operations of an item of runs (sequence_run.hpp) that depend on positions. They compute each run by itself; all others take the
// rows of all runs at once.

#include "executor/stage/stage_on.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/rope/rope.hpp"

namespace rheo::inline v0 {

/// False: the operation does not depend on positions.
template <class Kernels>
bool stage_on<Kernels>::pass::operate_on_runs(op const& o, std::size_t index)
{
    if constexpr (Kernels::computes_runs) {
        auto const is_attention = o.kind == op_kind::attention;
        if (o.kind != op_kind::embedding && o.kind != op_kind::rope && !is_attention) {
            return false;
        }
        auto const* const from = o.x[0] == no_slot ? nullptr : slot(0, o.x[0]);
        auto* const out = slot(0, o.z[0]);
        auto const kept = is_attention || o.kind == op_kind::rope ? kv_heads_of(o) : 0;
        std::int64_t row = 0;  // of the item, the run's first
        for (auto const& run : item.runs) {
            auto* const to = out + row * o.out_width;
            if (o.kind == op_kind::embedding) {
                by.embedding_forward({.batch = 1,
                                      .length = run.rows,
                                      .first = run.first,
                                      .width = o.out_width,
                                      .vocabulary = o.in_width,
                                      .tokens = a.tokens.data() + row,
                                      .token_table = parameter(0, index, 0),
                                      .position_table = parameter(0, index, 1),
                                      .output = to});
            } else if (o.kind == op_kind::rope) {
                by.rope({.rows = run.rows,
                         .length = run.rows,
                         .first = run.first,
                         .turned = o.heads + kept,
                         .kept = kept,
                         .head_width = head_width(o),
                         .table = self.turns_.at(turns_key(o)).data(),
                         .input = from + row * o.in_width,
                         .output = to});
            } else {
                expects(run.cache != nullptr, "a run of layers with an attention has a cache of keys and values");
                auto const both = static_cast<std::int64_t>(o.in_width - o.out_width);  // keys and values
                auto* const keys = run.cache->of(layer_id{self.first_.value + static_cast<int>(layer)}, o.id, run.first + run.rows);
                auto const* const qkv = from + row * o.in_width;
                for (std::int64_t r = 0; r < run.rows; ++r) {
                    by.copy(keys + (run.first + r) * both, qkv + r * o.in_width + o.out_width, static_cast<std::size_t>(both) * sizeof(float));
                }
                by.cached_attention({.rows = run.rows,
                                     .first = run.first,
                                     .width = o.out_width,
                                     .heads = o.heads,
                                     .kv_heads = o.kv_heads,
                                     .qkv = qkv,
                                     .keys_and_values = keys,
                                     .output = to});
            }
            row += run.rows;
        }
        return true;
    } else {
        throw precondition_error{"runs of sequences are computed by the processor alone"};
    }
}

}  // namespace rheo::inline v0
