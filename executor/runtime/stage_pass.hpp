#pragma once
// SPDX-License-Identifier: Apache-2.0

// One layer of a stage on one microbatch: it turns slots, saved values and parameters into pointers and runs the
// layer's operations one by one. A backward is an operation's input gradient and its weight gradient,
// one after the other or at different times; both ways the same kernels get the same arguments.

#include <functional>
#include <vector>

#include "kernels/attention/attention.hpp"
#include "kernels/dropout/dropout.hpp"
#include "kernels/exact/exact.hpp"
#include "kernels/linear/linear.hpp"
#include "runtime/stage.hpp"

namespace rheo::inline v0 {

struct stage::pass {
    stage& self;
    activation& a;
    stage_item const& item;
    std::size_t layer;
    std::vector<float*> gradient{};  ///< slot -> its gradient's memory
    std::vector<char> has{};         ///< slot -> something has been written there

    layer_description const& description() const { return self.layers_[layer]; }
    float* slot(int s) const
    {
        return layer == 0 && s == 0 ? a.input.get() : a.memory.get() + self.layout_.slots[layer][static_cast<std::size_t>(s)];
    }
    float* saved(std::size_t o) const { return a.memory.get() + self.layout_.saved[layer][o]; }
    /// Where a split backward keeps the gradient of a slot; null when it does not.
    float* kept(int s) const
    {
        auto const offset = s == no_slot ? -1 : self.layout_.gradients[layer][static_cast<std::size_t>(s)];
        return offset < 0 ? nullptr : a.gradients.get() + offset;
    }
    float const* parameter(std::size_t o, std::size_t i) const
    {
        auto const t = self.tensors_[layer][o][i];
        return t.value < 0 ? nullptr : self.state_->tensor(t).parameter.data();
    }
    dropout drop(op const& o) const
    {
        return {.probability = item.training ? o.dropout_per_mille / 1000.0 : 0.0,
                .key = {item.seed, item.step, item.microbatch, layer_id{self.first_.value + static_cast<int>(layer)}, o.id},
                .rows = {.length = tokens(), .first = first_token(), .whole = self.shape_.tokens}};
    }
    std::int64_t tokens() const { return slice_tokens(self.shape_); }
    std::int64_t first_token() const { return item.slice * tokens(); }

    /// The qkv of the slices before, and where the gradients of their keys and values are collected.
    earlier_slices<float const> keys_before(std::size_t index) const;
    earlier_slices<float> key_gradients_before(std::size_t index) const;
    std::ptrdiff_t key_gradients(std::size_t index) const { return self.layout_.saved[layer][index] + description().ops[index].heads * rows(); }
    std::int64_t rows() const { return self.layout_.rows; }
    tile_pool& pool() const { return item.pool != nullptr ? *item.pool : *self.pool_; }

    void forward(std::size_t index, loss_sum& loss);

    /// The gradient of what the operation's parameters made, where it is not there already.
    void own_gradient(std::size_t index);
    /// The gradients of what it reads. @pre own_gradient
    void input_gradient(std::size_t index);
    /// The contributions to its parameters. @pre own_gradient
    void weight_gradient(std::size_t index, std::function<bool(use_id)> const& adds);

    float* gradient_of(int s) { return gradient[static_cast<std::size_t>(s)]; }
    bool has_gradient(int s) const { return has[static_cast<std::size_t>(s)] != 0; }
    void gave(int s) { has[static_cast<std::size_t>(s)] = 1; }

    /// Where the contribution of this microbatch to a use goes; no sums when it is not wanted.
    gradient_sum_of<dtype::i64> target(std::size_t o, std::size_t i, std::function<bool(use_id)> const& adds) const;

    void linear_input(std::size_t index, weight_order order);
    void linear_weights(std::size_t index, weight_order order, std::function<bool(use_id)> const& adds);
    void rms_weights(std::size_t o, float const* input, float const* output_gradient, std::function<bool(use_id)> const& adds);
    void rope(op const& o, float const* from, float* to, bool back);
    void norm_weights(std::size_t index, float const* input, float const* output_gradient, std::function<bool(use_id)> const& adds);
};

}  // namespace rheo::inline v0
