#pragma once
// SPDX-License-Identifier: Apache-2.0

// A device's kernels as a stage calls them: put into the queue, with the workspace that each wants, and recorded where the same comes again. An item's
// values are copied first.

#include <memory>
#include <utility>

#include "executor/cuda/queue.hpp"
#include "executor/cuda/recordings.hpp"
#include "executor/stage/stage.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/cuda/policy.hpp"
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

namespace rheo::inline v0::cuda {

template <dtype_policy Policy>
class stage_kernels {
public:
    using storage = storage_t<Policy>;
    using gradient_target = gradient_sum<Policy>;
    static constexpr dtype_policy plain = policy_storing<storage>;  ///< of what adds to no sums
    using sum_of_shards = shard_sum_arguments<plain>;
    static constexpr bool has_states = true;
    static constexpr bool sums_in_rows = Policy.accumulate == dtype::i32;
    static constexpr bool joins_gradients = !sums_in_rows;
    static constexpr bool reads_items = true;
    static constexpr bool computes_runs = false;

    /// @param recorded of the stage; null: nothing is recorded
    stage_kernels(device_queue& queue, std::shared_ptr<recordings> recorded) : queue_{&queue}, recorded_{std::move(recorded)} {}
    stage_kernels const& for_item(stage_item const&) const { return *this; }

    bool records() const { return recorded_ != nullptr; }
    void begin_item(item_values const& values) const { queue_->begin_item(values); }
    random_stream const* streams() const { return queue_->item().streams; }
    void perform(recordings::slot const& slot, std::function<void()> const& work) const { recorded_ != nullptr ? recorded_->perform(slot, work) : work(); }
    void fetch_loss(loss_sum& wanted, std::size_t number) const { queue_->fetch_loss(wanted, number); }

    void copy(void* to, void const* from, std::size_t size) const { queue_->copy(to, from, size); }
    void adds_to(std::span<accumulator_state> states) const { queue_->adds_to(states); }
    void added() const { queue_->added(); }
    void judge(exact_rows_judge_arguments a) const
    {
        a.verdict = queue_->in_device(a.verdict);
        exact_rows_judge(in_order(), a);
    }

    void embedding_forward(embedding_forward_arguments<plain> a) const
    {
        a.tokens = queue_->item().tokens;
        cuda::embedding_forward<plain>(in_order(), a);
    }
    void embedding_backward_weight(embedding_backward_weight_arguments<Policy> a) const
    {
        a.tokens = queue_->item().tokens;
        a.token_gradient = queue_->in_device(a.token_gradient);
        a.position_gradient = queue_->in_device(a.position_gradient);
        cuda::embedding_backward_weight<Policy>(in_order(), queue_->item().order, a);
    }

    void layer_norm_forward(layer_norm_forward_arguments<plain> const& a) const { cuda::layer_norm_forward<plain>(in_order(), a); }
    void layer_norm_backward_input(layer_norm_backward_input_arguments<plain> const& a) const { cuda::layer_norm_backward_input<plain>(in_order(), a); }
    void layer_norm_backward_weight(layer_norm_backward_weight_arguments<Policy> a) const
    {
        a.gamma_gradient = queue_->in_device(a.gamma_gradient);
        a.beta_gradient = queue_->in_device(a.beta_gradient);
        cuda::layer_norm_backward_weight<Policy>(in_order(), queue_->scratch(layer_norm_backward_weight_workspace_bytes(a.rows, a.width)), a);
    }
    void layer_norm_backward(layer_norm_backward_input_arguments<plain> const& a, gradient_target gamma, gradient_target beta) const
    {
        cuda::layer_norm_backward<plain>(in_order(), norm_scratch(a), a, queue_->in_device(gamma), queue_->in_device(beta));
    }
    void residual_norm_backward(residual_norm_backward_arguments<plain> const& a, gradient_target gamma, gradient_target beta) const
    {
        cuda::residual_norm_backward<plain>(in_order(), norm_scratch(a), a, queue_->in_device(gamma), queue_->in_device(beta));
    }
    void rms_norm_backward(rms_norm_backward_input_arguments<plain> const& a, gradient_target gamma) const
    {
        cuda::rms_norm_backward<plain>(in_order(), queue_->scratch(rms_norm_backward_weight_workspace_bytes(a.rows, a.width)), a, queue_->in_device(gamma));
    }
    void residual_rms_norm_backward(residual_rms_norm_backward_arguments<plain> const& a, gradient_target gamma) const
    {
        cuda::residual_rms_norm_backward<plain>(in_order(), queue_->scratch(rms_norm_backward_weight_workspace_bytes(a.rows, a.width)), a,
                                                queue_->in_device(gamma));
    }
    void rms_norm_forward(rms_norm_forward_arguments<plain> const& a) const { cuda::rms_norm_forward<plain>(in_order(), a); }
    void rms_norm_backward_input(rms_norm_backward_input_arguments<plain> const& a) const { cuda::rms_norm_backward_input<plain>(in_order(), a); }
    void rms_norm_backward_weight(rms_norm_backward_weight_arguments<Policy> a) const
    {
        a.gamma_gradient = queue_->in_device(a.gamma_gradient);
        cuda::rms_norm_backward_weight<Policy>(in_order(), queue_->scratch(rms_norm_backward_weight_workspace_bytes(a.rows, a.width)), a);
    }
    void residual_norm_forward(residual_norm_forward_arguments<plain> const& a) const { cuda::residual_norm_forward<plain>(in_order(), a); }
    void residual_norm_backward(residual_norm_backward_arguments<plain> const& a) const { cuda::residual_norm_backward<plain>(in_order(), a); }
    void residual_rms_norm_forward(residual_rms_norm_forward_arguments<plain> const& a) const { cuda::residual_rms_norm_forward<plain>(in_order(), a); }
    void residual_rms_norm_backward(residual_rms_norm_backward_arguments<plain> const& a) const { cuda::residual_rms_norm_backward<plain>(in_order(), a); }
    void residual_add_forward(residual_add_forward_arguments<plain> const& a) const { cuda::residual_add_forward<plain>(in_order(), a); }
    void residual_add_backward(residual_add_backward_arguments<plain> const& a) const { cuda::residual_add_backward<plain>(in_order(), a); }

    void linear_forward(linear_forward_arguments<plain> const& a) const { cuda::linear_forward<plain>(in_order(), queue_->product_scratch(), queue_->by(), a); }
    void linear_backward_input(linear_backward_input_arguments<plain> const& a) const
    {
        cuda::linear_backward_input<plain>(in_order(), queue_->product_scratch(), queue_->by(), a);
    }
    void linear_backward_weight(linear_backward_weight_arguments<Policy> a) const
    {
        a.weight_gradient = queue_->in_device(a.weight_gradient);
        cuda::linear_backward_weight<Policy>(in_order(), queue_->scratch(linear_backward_weight_workspace_bytes(a.in, a.out)), queue_->by(), a);
    }
    void linear_backward_bias(linear_backward_bias_arguments<Policy> a) const
    {
        a.bias_gradient = queue_->in_device(a.bias_gradient);
        cuda::linear_backward_bias<Policy>(in_order(), queue_->scratch(linear_backward_bias_workspace_bytes(a.rows, a.out)), a);
    }

    void linear_backward_parameters(linear_backward_weight_arguments<Policy> a, gradient_target bias) const
    {
        a.weight_gradient = queue_->in_device(a.weight_gradient);
        cuda::linear_backward_parameters<Policy>(in_order(), queue_->scratch(linear_backward_parameters_workspace_bytes(a.rows, a.in, a.out)), queue_->by(), a,
                                                 queue_->in_device(bias));
    }

    void gelu_forward(gelu_forward_arguments<plain> const& a) const { cuda::gelu_forward<plain>(in_order(), a); }
    void gelu_backward(gelu_backward_arguments<plain> const& a) const { cuda::gelu_backward<plain>(in_order(), a); }
    void swiglu_forward(swiglu_forward_arguments<plain> const& a) const { cuda::swiglu_forward<plain>(in_order(), a); }
    void swiglu_backward(swiglu_backward_arguments<plain> const& a) const { cuda::swiglu_backward<plain>(in_order(), a); }
    void qk_norm_forward(qk_norm_forward_arguments<plain> const& a) const { cuda::qk_norm_forward<plain>(in_order(), a); }
    void qk_norm_backward_input(qk_norm_backward_input_arguments<plain> const& a) const { cuda::qk_norm_backward_input<plain>(in_order(), a); }
    void qk_norm_backward_weight(qk_norm_backward_weight_arguments<Policy> a) const
    {
        a.query_gradient = queue_->in_device(a.query_gradient);
        a.key_gradient = queue_->in_device(a.key_gradient);
        cuda::qk_norm_backward_weight<Policy>(in_order(), queue_->scratch(qk_norm_backward_weight_workspace_bytes(a.rows, a.heads, a.head_width)), a);
    }
    void rope(rope_arguments<plain> const& a) const { cuda::rope<plain>(in_order(), a); }

    void attention_forward(attention_forward_arguments<plain> const& a) const
    {
        if constexpr (plain == bf16) {
            if (auto* const cudnn = queue_->attention_by_cudnn()) {
                cudnn->forward(in_order(), queue_->scratch(cudnn->choose(attention_shape::of(a))), a);
                return;
            }
        }
        cuda::attention_forward<plain>(in_order(), a, queue_->attention());
    }
    void attention_backward(attention_backward_arguments<plain> const& a) const
    {
        if constexpr (plain == bf16) {
            if (auto* const cudnn = queue_->attention_by_cudnn()) {
                cudnn->backward(in_order(), queue_->scratch(cudnn->choose(attention_shape::of(a))), a);
                return;
            }
        }
        cuda::attention_backward<plain>(in_order(), queue_->scratch(attention_backward_workspace_bytes(a.batch, a.heads, a.length)), a, queue_->attention());
    }

    void cross_entropy_forward(cross_entropy_forward_arguments<plain> a) const { cuda::cross_entropy_forward<plain>(in_order(), counting_loss(a)); }
    void cross_entropy_fused(cross_entropy_fused_arguments<plain> a) const { cuda::cross_entropy_fused<plain>(in_order(), counting_loss(a)); }
    void shard_sum(shard_sum_arguments<plain> const& a) const { cuda::shard_sum<plain>(in_order(), a); }
    void cross_entropy_statistics(cross_entropy_statistics_arguments<plain> const& a) const { cuda::cross_entropy_statistics<plain>(in_order(), a); }
    /// @param begins it is the first shard: losses are added to zeros  @param number of the loss that the shard adds to
    void cross_entropy_finish(cross_entropy_finish_arguments<plain> a, bool begins, std::size_t number) const
    {
        a.targets = queue_->item().targets;
        a.loss = (begins ? queue_->begin_loss() : queue_->loss()) + number;
        cuda::cross_entropy_finish<plain>(in_order(), a);
    }
    void cross_entropy_backward(cross_entropy_backward_arguments<plain> a) const
    {
        a.targets = queue_->item().targets;
        cuda::cross_entropy_backward<plain>(in_order(), a);
    }

private:
    workspace norm_scratch(auto const& a) const { return queue_->scratch(layer_norm_backward_weight_workspace_bytes(a.rows, a.width)); }
    stream in_order() const { return queue_->in_order(); }

    template <class Arguments>
    Arguments& counting_loss(Arguments& a) const
    {
        a.targets = queue_->item().targets;
        a.loss = queue_->begin_loss();
        return a;
    }

    device_queue* queue_;
    std::shared_ptr<recordings> recorded_;
};

}  // namespace rheo::inline v0::cuda
