#pragma once
// SPDX-License-Identifier: Apache-2.0

// Texts as the tokens of a model, and back: by a tokenizer, or byte by byte.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/inference/loaded_model.hpp"
#include "executor/text/corpus/text_model.hpp"

namespace rheo::inline v0 {

class text_coder {
public:
    /// @param tokenizer a file or folder (open_text_model); empty: bytes  @throws exit_error naming the file
    explicit text_coder(std::string const& tokenizer);

    bool is_bytes() const { return !model_; }
    std::int64_t vocabulary() const { return is_bytes() ? 256 : vocabulary_of(*model_); }

    /// The tokens of a text, with those that the tokenizer puts before it. Bytes that are not UTF-8 are U+FFFD to a tokenizer.
    std::vector<token_id> encode(std::string_view text);
    /// The same with what it puts behind a text, too.
    std::vector<token_id> encode_whole(std::string_view text);

    /// The text of tokens, without special ones. @throws exit_error naming a token that the tokenizer does not have
    std::string decode(std::span<token_id const> tokens) const;

    /// The token that ends a document; none: there is none.
    std::optional<token_id> end() const { return is_bytes() ? std::nullopt : end_of_text(*model_); }
    /// Tokens before each text.
    std::int64_t tokens_before() const { return std::ssize(special_.before); }

private:
    std::optional<text_model> model_;
    std::optional<text_encoder> encoder_;
    post_processor special_;
};

/// The tokenizer for a model: the one that is named, else that of a Hugging Face folder, else none.
std::string tokenizer_for(std::string const& named, std::string const& model_folder);

/// Checks that a model's tokens may be those of the coder. @throws exit_error (usage) when they cannot
void expect_same_tokens(text_coder const& coder, loaded_model const& model);

/// Checks that all tokens are in the model's vocabulary. @param where names them in the sentence @throws exit_error (bad_data)
void expect_in_vocabulary(std::span<token_id const> tokens, loaded_model const& model, std::string const& where);

}  // namespace rheo::inline v0
