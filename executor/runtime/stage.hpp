#pragma once
// SPDX-License-Identifier: Apache-2.0

// A stage at work: consecutive layers of the model, run on one microbatch at a time by the host kernels. It
// interprets the layers' operation lists and knows nothing of pipelines, messages or recovery.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/tiles.hpp"
#include "rheo/model/layer.hpp"
#include "runtime/activation.hpp"
#include "runtime/resident_state.hpp"

namespace rheo::inline v0 {

/// Which microbatch of which step is computed; it keys the random numbers.
struct stage_item {
    std::uint64_t seed;
    step_id step;
    microbatch_id microbatch;
    bool training = true;  ///< false: no dropout, the loss leaves no gradient
};

class stage {
public:
    /// @param layers the stage's own; `first` is the first one's number in the model.
    /// @pre `state` holds all tensors of the layers; all arguments outlive the stage
    stage(std::span<layer_description const> layers, layer_id first, microbatch_shape shape, int microbatches,
          resident_state& state, tile_pool& pool);

    activation_layout const& layout() const { return layout_; }
    std::int64_t rows() const { return layout_.rows; }

    float* input(activation& a) const;             ///< [rows, width of the layer before]; null when the stage reads tokens
    float const* output(activation const& a) const;///< [rows, width]; null when the stage ends in the loss
    std::size_t input_floats() const;
    std::size_t output_floats() const;

    /// All layers forward; adds to `loss` when the stage has the loss.
    void forward(activation& a, stage_item const& item, loss_sum& loss);

    /// The layers from the last down to `lowest`, both gradients. `output_gradient` is [rows, width], written over, null at the
    /// loss; `input_gradient` likewise gets the gradient of the input of `lowest`, null when nobody wants it.
    /// A use contributes when `adds(use)`.
    void backward(activation& a, stage_item const& item, layer_id lowest, float* output_gradient, float* input_gradient,
                  std::function<bool(use_id)> const& adds);

    /// The backward in two halves, with the bits of the whole one: first the gradients of all inputs down to `lowest`, arguments
    /// as there; what the weights need is kept in the activation.
    void input_gradient(activation& a, stage_item const& item, layer_id lowest, float* output_gradient, float* input_gradient);

    /// Then the contributions of the uses at and above `lowest`, and what was kept is given back. @pre input_gradient with the same
    /// arguments, nothing else on the activation since
    void weight_gradient(activation& a, stage_item const& item, layer_id lowest, std::function<bool(use_id)> const& adds);

    /// The most microbatches that were between the two halves at once.
    int gradient_regions() const { return gradient_regions_; }

    /// The uses of the stage's operations with parameters, ascending; the loss is not among them.
    std::vector<use_id> const& uses() const { return uses_; }
    /// The layer of a use is at or above `lowest`.
    bool above(use_id use, layer_id lowest) const { return state_->info().uses[at(use)].layer >= lowest; }
    bool has_loss() const { return loss_use_.value >= 0; }
    use_id loss_use() const { return loss_use_; }
    layer_id first_layer() const { return first_; }
    layer_id last_layer() const { return layer_id{first_.value + static_cast<int>(layers_.size())}; }

    /// The logits that the last forward without training left, [rows, vocabulary]. @pre has_loss()
    float const* logits(activation const& a) const;

private:
    struct pass;

    /// From the last layer down to `lowest`; without `adds` the gradients for the weights are kept.
    void descend(activation& a, stage_item const& item, layer_id lowest, float* output_gradient, float* input_gradient,
                 std::function<bool(use_id)> const* adds);
    std::size_t depth_of(layer_id lowest) const;

    std::span<layer_description const> layers_;
    layer_id first_;
    microbatch_shape shape_;
    int microbatches_;
    resident_state* state_;
    tile_pool* pool_;
    activation_layout layout_;
    std::vector<std::vector<std::array<tensor_id, 2>>> tensors_;  ///< layer, operation -> tensors of its parameters
    std::vector<std::vector<std::array<use_id, 2>>> op_uses_;     ///< the same for uses
    std::vector<use_id> uses_;
    use_id loss_use_{-1};
    std::vector<float> gradients_;     ///< of the slots of one layer at a time
    std::vector<float> boundaries_[2]; ///< between two layers of the stage
    std::vector<std::unique_ptr<float[]>> spare_gradients_;  ///< regions for split backwards that nobody uses
    int gradient_regions_ = 0;
};

}  // namespace rheo::inline v0
