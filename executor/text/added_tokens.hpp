#pragma once
// SPDX-License-Identifier: Apache-2.0

// Tokens that are found in a text as they are, before it is split into words: special ones such as <|endoftext|>, and those that a user has added.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "executor/text/bpe_model.hpp"

namespace rheo::inline v0 {

struct added_token {
    token_id id = 0;
    std::string content{};
    bool special = false;      ///< decoding may leave it out
    bool normalized = false;   ///< found in the normalized text, else in the text as it is
    bool single_word = false;  ///< only between characters that are not part of a word
    bool lstrip = false;       ///< takes the white space before it
    bool rstrip = false;       ///< and after it
};

/// Texts, each with a value; finds the longest that begins at the leftmost place.
class text_set {
public:
    void add(std::string_view text, std::size_t value);

    struct hit {
        std::size_t begin;
        std::size_t end;
        std::size_t value;
    };
    /// The leftmost hit from `from` on, of several there the longest.
    std::optional<hit> find(std::string_view text, std::size_t from) const;

    bool empty() const { return nodes_.empty(); }
    std::size_t longest() const { return longest_; }

private:
    struct node {
        std::vector<std::pair<char, std::size_t>> next;
        std::optional<std::size_t> value;
    };
    std::vector<node> nodes_;
    std::array<bool, 256> begins_{};
    char only_ = 0;  ///< the one character with which all begin
    bool has_only_ = false;
    std::size_t longest_ = 0;

    std::size_t child(std::size_t of, char c) const;
};

class added_tokens {
public:
    added_tokens() = default;
    /// @param normalize what the tokenizer does to a text: tokens that are looked for in normalized text are normalized, too
    template <class Normalize>
    added_tokens(std::vector<added_token> tokens, Normalize normalize) : tokens_{std::move(tokens)}
    {
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            auto const& token = tokens_[i];
            (token.normalized ? in_normalized_ : in_text_).add(token.normalized ? normalize(token.content) : token.content, i);
            by_id_.emplace(token.id, i);
        }
    }

    /// A part of a text: a token, or text between tokens.
    struct part {
        std::size_t begin;
        std::size_t end;
        added_token const* token;  ///< null: text
    };

    /// Cuts a text at the tokens that are looked for in it as it is, or normalized. Empty stretches are left out.
    std::vector<part> cut(std::string_view text, bool normalized) const;

    added_token const* find(token_id id) const;
    std::vector<added_token> const& all() const { return tokens_; }
    bool any_in(bool normalized) const { return !(normalized ? in_normalized_ : in_text_).empty(); }

    /// How many bytes from a place on say whether a token begins there.
    std::size_t longest() const { return std::max(in_text_.longest(), in_normalized_.longest()); }

private:
    std::vector<added_token> tokens_;
    text_set in_text_;
    text_set in_normalized_;
    std::unordered_map<token_id, std::size_t> by_id_;
};

/// @param value the member `added_tokens` of a tokenizer.json @throws json_error naming key and value
std::vector<added_token> read_added_tokens(nlohmann::json const& value, bpe_model const& model);

}  // namespace rheo::inline v0
