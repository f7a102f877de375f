#pragma once
// SPDX-License-Identifier: Apache-2.0

// Tokens to train on, the same on every rank. Which tokens a microbatch has is a function of (seed, step,
// microbatch) alone, so any rank can read any microbatch and no order of execution changes the data (law 1 d). Sources are mixed by
// weight (source_mix.hpp); sequences are drawn at random, or shuffled, each once per epoch (sequence_order.hpp).

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "executor/config/config.hpp"
#include "executor/data/token_files.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/tensor/shape.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

class dataset {
public:
    /// Reads all tokens, once. Cost: one pass over them. @throws exit_error naming the file and what was expected: nothing readable, a bad
    /// token file, a token outside the vocabulary, too few tokens for one sequence in either split.
    /// @param microbatches of a step  @pre error_of_data of the config is empty
    dataset(data_config const& config, int vocabulary, microbatch_shape shape, int microbatches = 1);

    /// Tokens and next tokens of training microbatch `microbatch` of `step`, or of a slice of each of its sequences; both have
    /// rows(shape) elements.
    void training_microbatch(std::uint64_t seed, step_id step, microbatch_id microbatch, std::span<std::int32_t> tokens, std::span<std::int32_t> targets,
                             int slice = 0) const;

    /// The same of the validation split; the same ones at every evaluation.
    void validation_microbatch(microbatch_id microbatch, std::span<std::int32_t> tokens, std::span<std::int32_t> targets, int slice = 0) const;

    /// The first file that was changed in place since it was opened, on this rank. Cost: a look at each mapped file's status
    std::optional<token_files::changed_file> change() const;
    std::string path(std::size_t piece) const;  ///< of a file, the same number on all ranks

    state_digest digest() const;  ///< of all tokens and the split; part of the fingerprint, as order() is
    std::string order() const;    ///< what else decides which sequence comes when; empty: one source, drawn at random
    std::int64_t training_tokens() const;
    std::int64_t validation_tokens() const;
    double unigram_entropy() const;   ///< of the training split, nats per token
    bool is_text() const;             ///< tokens are bytes
    std::string description() const;  ///< for people: how many files and tokens

private:
    struct impl;
    std::shared_ptr<impl const> impl_;
};

}  // namespace rheo::inline v0
