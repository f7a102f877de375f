#pragma once
// SPDX-License-Identifier: Apache-2.0

// The next token, chosen by its logits: the most likely one, or one drawn from their distribution, all of it or its likeliest part. A draw is a function of the
// logits and of 32 random bits that the counter-based generator gives for (seed, sequence, position), so no order of computing changes it.

#include <cstdint>
#include <span>
#include <vector>

#include "executor/text/bpe_model.hpp"

namespace rheo::inline v0 {

struct sampling {
    double temperature = 1;  ///< 0: always the most likely token. Else logits are divided by it
    int top_k = 0;           ///< draws from the k most likely tokens; 0: from all
    double top_p = 1;        ///< then from the fewest of those whose probability is at least p together
};

/// The most likely token, of equal ones the lowest. @pre there is one
token_id most_likely(std::span<float const> logits);

/// The tokens that may be drawn, ascending: of equally likely ones at a border the lowest. @pre temperature > 0, 0 < top_p <= 1
std::vector<token_id> candidates(std::span<float const> logits, sampling const& how);

/// @param word 32 random bits  @pre as candidates; temperature may be 0
token_id sampled_token(std::span<float const> logits, sampling const& how, std::uint32_t word);

/// The random bits for the token at a position of the n-th sequence.
std::uint32_t sampling_word(std::uint64_t seed, std::int64_t sequence, std::int64_t position);

}  // namespace rheo::inline v0
