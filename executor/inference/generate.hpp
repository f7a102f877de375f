#pragma once
// SPDX-License-Identifier: Apache-2.0

// Tokens behind prompts. Several sequences are computed at once, and the next prompt begins where one ends; what a prompt gets is the same for any number of
// them, and of threads.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "executor/inference/incremental_model.hpp"
#include "executor/inference/sampler.hpp"

namespace rheo::inline v0 {

struct generation_options {
    std::int64_t tokens = 0;  ///< most that are generated behind each prompt
    sampling how{};
    std::uint64_t seed = 1;
    std::optional<token_id> end{};                                   ///< the token that ends a text; none: all are generated
    std::size_t batch = 16;                                          ///< most sequences at once
    bool cached = true;                                              ///< false: the whole sequence is computed for each token, with the same result
    std::function<void(std::size_t prompt, token_id token)> each{};  ///< called with each token as soon as it is chosen, in order
};

struct generated_tokens {
    std::vector<token_id> tokens;  ///< without the one that ends it
    bool ended = false;            ///< by that token

    friend bool operator==(generated_tokens const&, generated_tokens const&) = default;
};

/// All parts of a model call it together, and all get the tokens. @pre prompts have at least one token each, of the vocabulary
/// @throws exit_error (usage) naming the first prompt that goes beyond the context with its tokens; then nothing was computed
std::vector<generated_tokens> generate(incremental_model& with, std::span<std::vector<token_id> const> prompts, generation_options const& options);

}  // namespace rheo::inline v0
