#pragma once
// SPDX-License-Identifier: Apache-2.0

// The host's kernels as a stage calls them, under a policy that stores floats: what gradients are summed in is all that its functions differ in.

#include <cstring>

#include "executor/host/backend.hpp"
#include "executor/stage/stage_on.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/attention/cached_attention.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/exact_rows/exact_rows.hpp"
#include "kernels/gelu/gelu.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/linear/linear.hpp"
#include "kernels/qk_norm/qk_norm.hpp"
#include "kernels/residual_add/residual_add.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "kernels/residual_rms_norm/residual_rms_norm.hpp"
#include "kernels/rms_norm/rms_norm.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/shard_sum/shard_sum.hpp"
#include "kernels/swiglu/swiglu.hpp"

namespace rheo::inline v0 {

template <dtype_policy Policy>
class host_kernels {
public:
    using storage = float;
    using gradient_target = gradient_sum<Policy>;
    using sum_of_shards = shard_sum_arguments<>;
    static constexpr bool sums_in_rows = Policy.accumulate == dtype::i32;
    static constexpr bool has_states = false;
    static constexpr bool joins_gradients = false;
    static constexpr bool reads_items = false;
    static constexpr bool computes_runs = true;

    explicit host_kernels(tile_pool& pool, bool in_rows = false) : pool_{&pool}, in_rows_{in_rows} {}
    host_kernels for_item(stage_item const& item) const { return host_kernels{item.pool != nullptr ? *item.pool : *pool_, !item.runs.empty()}; }

    void copy(void* to, void const* from, std::size_t size) const { std::memcpy(to, from, size); }
    void embedding_forward(embedding_forward_arguments<> const& a) const { host::embedding_forward(*pool_, a); }
    void embedding_backward_weight(embedding_backward_weight_arguments<Policy> const& a) const { host::embedding_backward_weight(*pool_, a); }
    void layer_norm_forward(layer_norm_forward_arguments<> const& a) const { host::layer_norm_forward(*pool_, a); }
    void layer_norm_backward_input(layer_norm_backward_input_arguments<> const& a) const { host::layer_norm_backward_input(*pool_, a); }
    void layer_norm_backward_weight(layer_norm_backward_weight_arguments<Policy> const& a) const { host::layer_norm_backward_weight(*pool_, a); }
    void rms_norm_forward(rms_norm_forward_arguments<> const& a) const { host::rms_norm_forward(*pool_, a); }
    void rms_norm_backward_input(rms_norm_backward_input_arguments<> const& a) const { host::rms_norm_backward_input(*pool_, a); }
    void rms_norm_backward_weight(rms_norm_backward_weight_arguments<Policy> const& a) const { host::rms_norm_backward_weight(*pool_, a); }
    void residual_norm_forward(residual_norm_forward_arguments<> const& a) const { host::residual_norm_forward(*pool_, a); }
    void residual_norm_backward(residual_norm_backward_arguments<> const& a) const { host::residual_norm_backward(*pool_, a); }
    void residual_rms_norm_forward(residual_rms_norm_forward_arguments<> const& a) const { host::residual_rms_norm_forward(*pool_, a); }
    void residual_rms_norm_backward(residual_rms_norm_backward_arguments<> const& a) const { host::residual_rms_norm_backward(*pool_, a); }
    void residual_add_forward(residual_add_forward_arguments<> const& a) const { host::residual_add_forward(*pool_, a); }
    void residual_add_backward(residual_add_backward_arguments<> const& a) const { host::residual_add_backward(*pool_, a); }
    void linear_forward(linear_forward_arguments<> const& a) const { in_rows_ ? host::linear_forward_in_rows(*pool_, a) : host::linear_forward(*pool_, a); }
    void linear_backward_input(linear_backward_input_arguments<> const& a) const { host::linear_backward_input(*pool_, a); }
    void linear_backward_weight(linear_backward_weight_arguments<Policy> const& a) const { host::linear_backward_weight(*pool_, a); }
    void linear_backward_bias(linear_backward_bias_arguments<Policy> const& a) const { host::linear_backward_bias(*pool_, a); }
    void gelu_forward(gelu_forward_arguments<> const& a) const { host::gelu_forward(*pool_, a); }
    void gelu_backward(gelu_backward_arguments<> const& a) const { host::gelu_backward(*pool_, a); }
    void qk_norm_forward(qk_norm_forward_arguments<> const& a) const { host::qk_norm_forward(*pool_, a); }
    void qk_norm_backward_input(qk_norm_backward_input_arguments<> const& a) const { host::qk_norm_backward_input(*pool_, a); }
    void qk_norm_backward_weight(qk_norm_backward_weight_arguments<Policy> const& a) const { host::qk_norm_backward_weight(*pool_, a); }
    void rope(rope_arguments<> const& a) const { host::rope(*pool_, a); }
    void swiglu_forward(swiglu_forward_arguments<> const& a) const { host::swiglu_forward(*pool_, a); }
    void swiglu_backward(swiglu_backward_arguments<> const& a) const { host::swiglu_backward(*pool_, a); }
    void attention_forward(attention_forward_arguments<> const& a) const { host::attention_forward(*pool_, a); }
    void cached_attention(cached_attention_arguments<> const& a) const { host::cached_attention(*pool_, a); }
    void attention_backward(attention_backward_arguments<> const& a) const { host::attention_backward(*pool_, a); }
    void judge(exact_rows_judge_arguments const& a) const { definition::exact_rows_judge(a); }
    void cross_entropy_forward(cross_entropy_forward_arguments<> const& a) const { host::cross_entropy_forward(*pool_, a); }
    void cross_entropy_backward(cross_entropy_backward_arguments<> const& a) const { host::cross_entropy_backward(*pool_, a); }
    void shard_sum(shard_sum_arguments<> const& a) const { host::shard_sum(*pool_, a); }
    void cross_entropy_statistics(cross_entropy_statistics_arguments<> const& a) const { host::cross_entropy_statistics(*pool_, a); }
    void cross_entropy_finish(cross_entropy_finish_arguments<> const& a, bool, std::size_t) const { host::cross_entropy_finish(*pool_, a); }
    void cross_entropy_fused(cross_entropy_fused_arguments<> const& a) const { host::cross_entropy_fused(*pool_, a); }

private:
    tile_pool* pool_;
    bool in_rows_;  ///< products with independent rows
};

extern template class stage_on<host_kernels<fp32>>;
extern template class stage_on<host_kernels<fp32_i32>>;

template <dtype_policy Policy>
class host_stage_of final : public stage_on<host_kernels<Policy>> {
public:
    host_stage_of(std::span<layer_description const> layers, layer_id first, microbatch_shape shape, int microbatches, resident_state& state,
                  host_backend& backend, std::span<recompute_level const> recompute_levels = {}, shard_group const& group = {})
        : stage_on<host_kernels<Policy>>{layers, first, shape, microbatches, state, backend, host_kernels<Policy>{backend.pool()}, recompute_levels, group}
    {
    }
};

using host_stage = host_stage_of<fp32>;

}  // namespace rheo::inline v0
