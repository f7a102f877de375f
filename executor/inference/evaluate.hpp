#pragma once
// SPDX-License-Identifier: Apache-2.0

// The loss of whole files, and that of a run's own validation split.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/inference/loaded_model.hpp"
#include "executor/inference/text_coder.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"

namespace rheo::inline v0 {

struct evaluation_options {
    std::int64_t window = 0;     ///< tokens of a window; 0: the sequences of the training
    std::int64_t stride = 0;     ///< from window to window; 0: the window's length
    std::string field = "text";  ///< of JSON lines
};

struct text_evaluation {
    loss_sum loss;  ///< its targets are the tokens that were predicted
    std::int64_t documents = 0;
    std::optional<std::int64_t> bytes;  ///< of the text whose tokens were predicted; none: of token files without their tokenizer it is not known
    std::int64_t window = 0;
    std::int64_t stride = 0;

    double nats() const { return mean_loss(loss); }
    double perplexity() const;
    std::optional<double> bits_per_byte() const;
};

/// Each file is a document, as is each JSON line where a tokenizer is used; a token file is one as a whole. A document's first token is predicted only where
/// the tokenizer puts one before it.
/// @throws exit_error naming the file: it cannot be read, or has tokens that the model does not; nothing was predicted; a window beyond the context
text_evaluation evaluate_files(loaded_model& model, text_coder& coder, std::vector<std::string> const& paths, evaluation_options const& options);

/// The loss that the run's training records of its validation split with these parameters: the same microbatches with the same bits.
/// @throws exit_error as the training's data do
text_evaluation evaluate_validation(loaded_model& model);

}  // namespace rheo::inline v0
