#pragma once
// SPDX-License-Identifier: Apache-2.0

// A model that computes tokens behind others it has computed before, whose keys and values it keeps. A pass takes rows of several sequences, at any positions.
// Logits have the same bits however the tokens of a sequence are cut into calls, whatever sequences are computed beside it, and for any number of
// threads: each row is computed by itself. The products add in another order than those of training, so logits differ from a training's in their last bits.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "executor/inference/loaded_model.hpp"
#include "executor/stage/stage.hpp"
#include "executor/text/bpe_model.hpp"

namespace rheo::inline v0 {

/// A sequence as far as it was computed.
struct cached_sequence {
    explicit cached_sequence(loaded_model const& model) : cache{model.model().layers} {}

    key_value_cache cache;
    std::int64_t tokens = 0;  ///< that were computed. It may be set back, to continue from there with others
};

/// Tokens that come next in a sequence.
struct continuation {
    cached_sequence* sequence;
    std::span<token_id const> tokens;
    std::int64_t logits_from = 0;  ///< the logits behind this one of the tokens and those after it are wanted
};

/// Gets logits, [vocabulary], of what follows token `index` of a continuation, valid during the call.
using logits_receiver = std::function<void(std::size_t which, std::int64_t index, std::span<float const> logits)>;

class incremental_model {
public:
    /// @param rows most tokens of a pass  @param logit_rows most rows whose logits are computed at once. They bound memory, not what can be computed
    /// @param part as the model was loaded with: all parts are called together, with the same arguments  @pre the model was loaded on a grid of one, and outlives this
    explicit incremental_model(loaded_model& model, int rows = 256, int logit_rows = 16, model_part part = {});

    loaded_model& model() { return *model_; }

    /// Computes the tokens of all, a pass for as many as fit one. The sequences are then as long as that. `receive` gets the wanted logits in the last part,
    /// those of a continuation in their order.
    /// @pre each sequence is named once; tokens are of the vocabulary
    /// @throws exit_error (usage) for a sequence that would be longer than the context, and then nothing was computed
    void forward(std::span<continuation const> all, logits_receiver const& receive);

    /// Tokens that the last part has chosen become those of all parts.
    void share(std::span<token_id> chosen) const
    {
        if (part_.share) {
            part_.share(chosen);
        }
    }

private:
    loaded_model* model_;
    model_part part_;
    std::unique_ptr<stage> body_;        ///< all layers of the part but the model's last
    std::unique_ptr<stage> head_;        ///< that one, which gives logits; null where another part has it
    std::unique_ptr<activation> rows_;   ///< of the body
    std::unique_ptr<activation> heads_;  ///< of the head
    std::int64_t reached_ = 0;           ///< positions that the body has

    /// A row of a pass whose logits are wanted.
    struct wanted_row {
        std::size_t which;
        std::int64_t index;
        std::int64_t row;
    };
    void pass(std::span<sequence_run const> runs, std::span<wanted_row const> wanted, logits_receiver const& receive);
};

/// Checks that a text of so many tokens fits a context. @throws exit_error (usage)
void expect_within_context(std::int64_t tokens, std::int64_t context);

}  // namespace rheo::inline v0
