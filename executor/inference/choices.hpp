#pragma once
// SPDX-License-Identifier: Apache-2.0

// Multiple-choice questions by likelihood, as EleutherAI's lm-evaluation-harness scores them: a model answers with the choice whose tokens are likeliest behind
// the context. `acc` compares the sums of log-likelihoods, `acc_norm` those sums over the bytes of each choice.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "executor/inference/incremental_model.hpp"
#include "executor/inference/text_coder.hpp"

namespace rheo::inline v0 {

struct choice_question {
    std::string context;
    std::vector<std::string> choices;  ///< each continues the context as it stands
    std::size_t answer = 0;            ///< which of them is right
    std::string where;                 ///< names the line in sentences
};

/// The questions of JSON lines: objects with `context` (or `prompt`), `choices` (a list of texts) and `answer` (a number from 0). Other members may be there.
/// @throws exit_error naming file and line
std::vector<choice_question> read_choices(std::string_view text, std::string const& file);

/// How likely each choice is.
struct choice_scores {
    std::vector<double> log_likelihood;  ///< nats
    std::vector<std::int64_t> bytes;     ///< of the choice, without blanks that it begins with

    std::size_t best() const;  ///< of equal ones the first
    std::size_t best_per_byte() const;
};

/// A context that ends in blanks gives them to the choices: tokens often begin with one. Tokens of a choice are those of context and choice together, without as
/// many as the context has alone. The context is computed once.
/// @throws exit_error naming the line: an empty context without a token to begin with, a text that goes beyond the model's context
choice_scores score(incremental_model& with, text_coder& coder, choice_question const& question);

}  // namespace rheo::inline v0
