#pragma once
// SPDX-License-Identifier: Apache-2.0

// A tokenizer as Hugging Face's tokenizer.json describes it: normalizer, added tokens, pre-tokenizer, byte-pair encoding, special tokens around a text,
// decoder. It gives the tokens that Hugging Face's library gives. Anything in a file that would change them and is not supported is refused.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/text/added_tokens.hpp"
#include "executor/text/bpe_model.hpp"
#include "executor/text/decoder.hpp"
#include "executor/text/normalizer.hpp"
#include "executor/text/post_processor.hpp"
#include "executor/text/pre_tokenizer.hpp"

namespace rheo::inline v0 {

/// What a tokenizer.json holds.
struct tokenizer_parts {
    normalizer normalize;
    added_tokens added;
    pre_tokenizer words;
    bpe_model model;
    post_processor special;
    decoder text;
};

/// A value that does not change; copies share it, and threads may use it at once.
class tokenizer {
public:
    /// @param json the text of a tokenizer.json @throws json_error naming key and value
    explicit tokenizer(std::string_view json);

    tokenizer_parts const& parts() const { return *parts_; }

    /// The tokens of a text, without special tokens around it. @pre the text is valid UTF-8
    std::vector<token_id> encode(std::string_view text) const;

    /// The text of tokens. @param skip_special leaves out special tokens @throws exit_error naming a token that there is none
    std::string decode(std::span<token_id const> tokens, bool skip_special = true) const;

    std::optional<token_id> id(std::string_view token) const;
    /// A token as it is written; empty when there is none of this number.
    std::string token(token_id id) const;

    /// One more than the largest token.
    std::int64_t vocabulary() const { return static_cast<std::int64_t>(names_->size()); }

    /// How a long text can be cut without a change of its tokens.
    enum class cutting : unsigned char {
        never,
        between_matches,  ///< where a match of the pre-tokenizer's pattern ends: found by matching
        before_blanks,    ///< before a blank that follows another character: no merge joins across it
    };
    cutting cuts() const { return cuts_; }

    /// Whether words are encoded apart where a mark of a blank begins one: exact, since no merge joins them.
    std::string const& word_mark() const { return word_mark_; }

private:
    std::shared_ptr<tokenizer_parts const> parts_;
    std::shared_ptr<std::vector<std::string> const> names_;
    std::string word_mark_;
    cutting cuts_ = cutting::never;

    void name_tokens();
    cutting find_cutting() const;
};

/// Reads all parts. @throws json_error naming key and value
tokenizer_parts read_tokenizer_parts(std::string_view json);

}  // namespace rheo::inline v0
