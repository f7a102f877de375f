#pragma once
// SPDX-License-Identifier: Apache-2.0

// A device's kernels as a stage calls them: put into the queue, with the workspace that each wants. Tokens and targets lie with the
// processor and are copied first.

#include "cuda/device_queue.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/gelu/gelu.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/linear/linear.hpp"
#include "kernels/residual_add/residual_add.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "kernels/residual_rms_norm/residual_rms_norm.hpp"
#include "kernels/rms_norm/rms_norm.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/swiglu/swiglu.hpp"
#include "runtime/stage.hpp"

namespace rheo::inline v0::cuda {

template <dtype_policy Policy>
class stage_kernels {
public:
    using storage = storage_t<Policy>;
    static constexpr bool has_states = true;
    static constexpr bool joins_gradients = true;

    explicit stage_kernels(device_queue& queue) : queue_{&queue} {}
    stage_kernels const& for_item(stage_item const&) const { return *this; }

    void copy(void* to, void const* from, std::size_t size) const { queue_->copy(to, from, size); }
    void adds_to(std::span<accumulator_state> states) const { queue_->adds_to(states); }
    void added() const { queue_->added(); }

    void embedding_forward(embedding_forward_arguments<Policy> a) const
    {
        a.tokens = copied(device_queue::place::tokens, a.tokens, a.batch * a.length);
        cuda::embedding_forward<Policy>(in_order(), a);
    }
    void embedding_backward_weight(embedding_backward_weight_arguments<Policy> a) const
    {
        auto const order = queue_->ordered({a.tokens, static_cast<std::size_t>(a.batch * a.length)}, a.vocabulary);
        a.tokens = copied(device_queue::place::tokens, a.tokens, a.batch * a.length);
        a.token_gradient = queue_->in_device(a.token_gradient);
        a.position_gradient = queue_->in_device(a.position_gradient);
        cuda::embedding_backward_weight<Policy>(in_order(), order, a);
    }

    void layer_norm_forward(layer_norm_forward_arguments<Policy> const& a) const { cuda::layer_norm_forward<Policy>(in_order(), a); }
    void layer_norm_backward_input(layer_norm_backward_input_arguments<Policy> const& a) const { cuda::layer_norm_backward_input<Policy>(in_order(), a); }
    void layer_norm_backward_weight(layer_norm_backward_weight_arguments<Policy> a) const
    {
        a.gamma_gradient = queue_->in_device(a.gamma_gradient);
        a.beta_gradient = queue_->in_device(a.beta_gradient);
        cuda::layer_norm_backward_weight<Policy>(in_order(), queue_->room(layer_norm_backward_weight_room(a.rows, a.width)), a);
    }
    void layer_norm_backward(layer_norm_backward_input_arguments<Policy> const& a, gradient_sum<Policy> gamma, gradient_sum<Policy> beta) const
    {
        cuda::layer_norm_backward<Policy>(in_order(), norm_room(a), a, queue_->in_device(gamma), queue_->in_device(beta));
    }
    void residual_norm_backward(residual_norm_backward_arguments<Policy> const& a, gradient_sum<Policy> gamma, gradient_sum<Policy> beta) const
    {
        cuda::residual_norm_backward<Policy>(in_order(), norm_room(a), a, queue_->in_device(gamma), queue_->in_device(beta));
    }
    void rms_norm_backward(rms_norm_backward_input_arguments<Policy> const& a, gradient_sum<Policy> gamma) const
    {
        cuda::rms_norm_backward<Policy>(in_order(), queue_->room(rms_norm_backward_weight_room(a.rows, a.width)), a, queue_->in_device(gamma));
    }
    void residual_rms_norm_backward(residual_rms_norm_backward_arguments<Policy> const& a, gradient_sum<Policy> gamma) const
    {
        cuda::residual_rms_norm_backward<Policy>(in_order(), queue_->room(rms_norm_backward_weight_room(a.rows, a.width)), a, queue_->in_device(gamma));
    }
    void rms_norm_forward(rms_norm_forward_arguments<Policy> const& a) const { cuda::rms_norm_forward<Policy>(in_order(), a); }
    void rms_norm_backward_input(rms_norm_backward_input_arguments<Policy> const& a) const { cuda::rms_norm_backward_input<Policy>(in_order(), a); }
    void rms_norm_backward_weight(rms_norm_backward_weight_arguments<Policy> a) const
    {
        a.gamma_gradient = queue_->in_device(a.gamma_gradient);
        cuda::rms_norm_backward_weight<Policy>(in_order(), queue_->room(rms_norm_backward_weight_room(a.rows, a.width)), a);
    }
    void residual_norm_forward(residual_norm_forward_arguments<Policy> const& a) const { cuda::residual_norm_forward<Policy>(in_order(), a); }
    void residual_norm_backward(residual_norm_backward_arguments<Policy> const& a) const { cuda::residual_norm_backward<Policy>(in_order(), a); }
    void residual_rms_norm_forward(residual_rms_norm_forward_arguments<Policy> const& a) const { cuda::residual_rms_norm_forward<Policy>(in_order(), a); }
    void residual_rms_norm_backward(residual_rms_norm_backward_arguments<Policy> const& a) const { cuda::residual_rms_norm_backward<Policy>(in_order(), a); }
    void residual_add_forward(residual_add_forward_arguments<Policy> const& a) const { cuda::residual_add_forward<Policy>(in_order(), a); }
    void residual_add_backward(residual_add_backward_arguments<Policy> const& a) const { cuda::residual_add_backward<Policy>(in_order(), a); }

    void linear_forward(linear_forward_arguments<Policy> const& a) const { cuda::linear_forward<Policy>(in_order(), queue_->product_room(), queue_->by(), a); }
    void linear_backward_input(linear_backward_input_arguments<Policy> const& a) const
    {
        cuda::linear_backward_input<Policy>(in_order(), queue_->product_room(), queue_->by(), a);
    }
    void linear_backward_weight(linear_backward_weight_arguments<Policy> a) const
    {
        a.weight_gradient = queue_->in_device(a.weight_gradient);
        cuda::linear_backward_weight<Policy>(in_order(), queue_->room(linear_backward_weight_room(a.in, a.out)), queue_->by(), a);
    }
    void linear_backward_bias(linear_backward_bias_arguments<Policy> a) const
    {
        a.bias_gradient = queue_->in_device(a.bias_gradient);
        cuda::linear_backward_bias<Policy>(in_order(), queue_->room(linear_backward_bias_room(a.rows, a.out)), a);
    }

    void linear_backward_parameters(linear_backward_weight_arguments<Policy> a, gradient_sum<Policy> bias) const
    {
        a.weight_gradient = queue_->in_device(a.weight_gradient);
        cuda::linear_backward_parameters<Policy>(in_order(), queue_->room(linear_backward_parameters_room(a.rows, a.in, a.out)), queue_->by(), a, queue_->in_device(bias));
    }

    void gelu_forward(gelu_forward_arguments<Policy> const& a) const { cuda::gelu_forward<Policy>(in_order(), a); }
    void gelu_backward(gelu_backward_arguments<Policy> const& a) const { cuda::gelu_backward<Policy>(in_order(), a); }
    void swiglu_forward(swiglu_forward_arguments<Policy> const& a) const { cuda::swiglu_forward<Policy>(in_order(), a); }
    void swiglu_backward(swiglu_backward_arguments<Policy> const& a) const { cuda::swiglu_backward<Policy>(in_order(), a); }
    void rope(rope_arguments<Policy> const& a) const { cuda::rope<Policy>(in_order(), a); }

    void attention_forward(attention_forward_arguments<Policy> const& a) const { cuda::attention_forward<Policy>(in_order(), a); }
    void attention_backward(attention_backward_arguments<Policy> const& a) const
    {
        cuda::attention_backward<Policy>(in_order(), queue_->room(attention_backward_room(a.batch, a.heads, a.length)), a);
    }

    void cross_entropy_forward(cross_entropy_forward_arguments<Policy> a) const
    {
        counting_loss(a, [&] { cuda::cross_entropy_forward<Policy>(in_order(), a); });
    }
    void cross_entropy_fused(cross_entropy_fused_arguments<Policy> a) const
    {
        counting_loss(a, [&] { cuda::cross_entropy_fused<Policy>(in_order(), a); });
    }
    void cross_entropy_backward(cross_entropy_backward_arguments<Policy> a) const
    {
        a.targets = copied(device_queue::place::targets, a.targets, a.rows);
        cuda::cross_entropy_backward<Policy>(in_order(), a);
    }

private:
    workspace norm_room(auto const& a) const { return queue_->room(layer_norm_backward_weight_room(a.rows, a.width)); }
    stream in_order() const { return queue_->in_order(); }

    std::int32_t const* copied(device_queue::place where, std::int32_t const* from, std::int64_t count) const
    {
        return queue_->copied(where, std::span{from, static_cast<std::size_t>(count)});
    }

    template <class Arguments, class Kernel>
    void counting_loss(Arguments& a, Kernel const& kernel) const
    {
        a.targets = copied(device_queue::place::targets, a.targets, a.rows);
        a.loss = queue_->begin_loss(*a.loss);
        kernel();
        queue_->end_loss();
    }

    device_queue* queue_;
};

}  // namespace rheo::inline v0::cuda
