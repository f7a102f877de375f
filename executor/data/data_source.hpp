#pragma once
// SPDX-License-Identifier: Apache-2.0

// One source of tokens: files, split into a part to train on and one to validate, and what one pass over them finds.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "executor/data/sequence_windows.hpp"
#include "executor/data/token_files.hpp"
#include "rheo/tensor/digest.hpp"

namespace rheo::inline v0 {

/// What a source is read for.
struct source_request {
    std::string name = "tokens";       ///< in the digest, which tells sources apart by it
    double validation_fraction = 0.0;  ///< from the end
    bool trains = true;                ///< false: all of it is for validation
    int vocabulary = 0;
    std::int64_t length = 1;           ///< tokens of a sequence
    std::int32_t document_token = -1;  ///< ends a document; -1: sequences may span documents
};

class data_source {
public:
    /// Reads all tokens, once. @throws exit_error naming the file and what was expected: nothing readable, a bad token file, a token outside the vocabulary,
    /// no whole sequence, or no document of two tokens, in a split
    data_source(std::vector<std::string> const& paths, source_request const& request);

    token_files const& files() const { return files_; }
    std::int64_t training_tokens() const { return training_tokens_; }
    std::int64_t validation_tokens() const { return files_.count() - training_tokens_; }
    sequence_windows const& training() const { return training_; }
    sequence_windows const& validation() const { return validation_; }
    std::int32_t document_token() const { return document_token_; }
    state_digest digest() const { return digest_; }  ///< of all tokens and the split
    /// Token -> how often it is in the part to train on.
    std::vector<std::int64_t> const& counts() const { return counts_; }

    /// The tokens of a window from `skipped` on, and those one further on; what the window does not have gets the token that ends documents, and no target.
    /// @pre both have the same length
    void read(token_window const& window, std::int64_t skipped, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const;

private:
    template <class Each>
    void for_each_part(Each each) const;
    void take_stock(source_request const& request);
    void cut(source_request const& request, std::vector<std::int64_t> ends);

    token_files files_;
    std::int64_t training_tokens_ = 0;
    std::int32_t document_token_;
    state_digest digest_{};
    std::vector<std::int64_t> counts_;
    sequence_windows training_{};
    sequence_windows validation_{};
};

}  // namespace rheo::inline v0
