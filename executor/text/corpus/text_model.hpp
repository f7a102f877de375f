#pragma once
// SPDX-License-Identifier: Apache-2.0

// A tokenizer of either kind: Hugging Face's tokenizer.json, or SentencePiece's .model.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "executor/text/corpus/corpus_reader.hpp"
#include "executor/text/corpus/sentencepiece_model.hpp"
#include "executor/text/token_encoder.hpp"
#include "executor/text/tokenizer.hpp"

namespace rheo::inline v0 {

using text_model = std::variant<tokenizer, sentencepiece_model>;

/// @param path of a tokenizer.json, of a .model, or of a folder that holds tokenizer.json or tokenizer.model @throws exit_error naming the file
text_model open_text_model(std::string const& path);

/// Tokens of texts, for one thread.
class text_encoder {
public:
    explicit text_encoder(text_model const& model);

    /// As token_encoder's. @pre for a model of SentencePiece's the chunk is a whole text
    chunk_end encode(text_chunk const& chunk, std::vector<token_id>& out);

private:
    std::variant<token_encoder, sentencepiece_model> encoder_;
};

std::int64_t vocabulary_of(text_model const& model);
std::optional<token_id> id_of(text_model const& model, std::string const& token);
std::string token_of(text_model const& model, token_id id);
/// The text of tokens, without special ones. @throws exit_error naming a token that there is none of
std::string text_of(text_model const& model, std::span<token_id const> tokens);
post_processor special_tokens_of(text_model const& model);
/// Whether a text that begins behind an added token has other tokens than one that continues.
bool minds_beginnings(text_model const& model);
/// Where large texts may be cut; empty: nowhere.
cut_rule cut_rule_of(text_model const& model);

/// The token that ends a text: <|endoftext|>, <|end_of_text|>, </s> or <eos>, the first of them that the model has. None: it has none.
std::optional<token_id> end_of_text(text_model const& model);

}  // namespace rheo::inline v0
