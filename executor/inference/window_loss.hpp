#pragma once
// SPDX-License-Identifier: Apache-2.0

// The loss of documents, by the kernels of a training, with the bits of its evaluations. A document is cut into windows of equal length. A window of W tokens
// from b on predicts the tokens b+1 .. b+W, each from those of the window before it. Windows begin every `stride` tokens; where they overlap, a token counts in
// the first of them alone, so each token but a document's first counts once. With a stride of W tokens have 1 to W tokens before them, with a shorter one all
// but the first window's have at least W - stride + 1.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "executor/inference/loaded_model.hpp"
#include "executor/stage/stage.hpp"
#include "executor/text/bpe_model.hpp"

namespace rheo::inline v0 {

class window_loss {
public:
    /// @param window tokens of a window  @pre 1 <= window <= context; the model outlives this
    window_loss(loaded_model& model, std::int64_t window);

    /// Adds the loss of a document. Windows of several are computed at once. @pre 1 <= stride <= window
    void add(std::span<token_id const> document, std::int64_t stride);

    /// Adds the loss of a microbatch of the shape of the training: tokens and targets of all its slices, [slice, rows]. @pre nothing waits
    void add_microbatch(std::span<std::vector<std::int32_t> const> tokens, std::span<std::vector<std::int32_t> const> targets);

    /// Of all that was added.
    loss_sum loss();

    microbatch_shape shape() const { return shape_; }

private:
    loaded_model* model_;
    microbatch_shape shape_;
    std::unique_ptr<stage> layers_;
    std::vector<std::unique_ptr<activation>> slices_;
    int waiting_ = 0;  ///< windows that were put into the activations and are not computed yet
    loss_sum loss_{};

    void put(std::span<token_id const> document, std::int64_t begin, std::int64_t counts_from);
    void compute();
};

}  // namespace rheo::inline v0
