#pragma once
// SPDX-License-Identifier: Apache-2.0

// SentencePiece's .model, read by its own library: unigram and BPE models with the normalization that is in the file. Texts are encoded whole: the library
// normalizes a text from its beginning on, and puts a blank before it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/text/bpe_model.hpp"

namespace rheo::inline v0 {

/// A value that does not change; copies share it, and threads may use it at once.
class sentencepiece_model {
public:
    /// @param bytes of a .model @throws exit_error (bad_data): it is none, or rheo was built without the library
    explicit sentencepiece_model(std::string_view bytes);

    /// Appends the tokens of a whole text.
    void encode(std::string_view text, std::vector<token_id>& out) const;
    std::string decode(std::span<token_id const> tokens) const;

    std::int64_t vocabulary() const;
    std::optional<token_id> id(std::string_view token) const;
    std::string token(token_id id) const;
    std::optional<token_id> end_of_text() const;  ///< the file's own, if it has one

private:
    struct library;
    std::shared_ptr<library const> library_;
};

/// What a trainer of SentencePiece's takes.
struct sentencepiece_training {
    std::function<bool(std::string&)> next_sentence;  ///< false: there are no more
    std::string kind = "unigram";                     ///< or bpe
    std::int64_t vocabulary = 0;
    int threads = 1;
};

/// The bytes of a .model. The same sentences and options give the same bytes. @throws exit_error
std::string train_sentencepiece(sentencepiece_training const& training);

}  // namespace rheo::inline v0
