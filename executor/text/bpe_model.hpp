#pragma once
// SPDX-License-Identifier: Apache-2.0

// Byte-pair encoding (Sennrich et al. 2016): a word's symbols are joined, the pair of the least rank first and of those the leftmost, until no pair has
// one. Symbols are bytes (byte-level BPE) or characters, of which those that are no token may be encoded byte by byte.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rheo::inline v0 {

using token_id = std::int32_t;

/// What a tokenizer's file says of its model.
struct bpe_description {
    struct merge {
        std::string left;
        std::string right;
    };
    std::unordered_map<std::string, token_id> vocabulary{};  ///< as written in the file
    std::vector<merge> merges{};                             ///< by rank
    std::optional<std::string> unknown{};                    ///< token of symbols that are none
    bool fuse_unknown = false;                               ///< several in a row are one token
    bool byte_fallback = false;                              ///< a character that is no token becomes tokens <0x00> to <0xFF>
    bool ignore_merges = false;                              ///< a word that is a token is that token, whatever the merges
    bool byte_level = false;                                 ///< tokens are written as byte_level.hpp has it, symbols are bytes
};

class bpe_model {
public:
    /// @throws json_error naming the merge or token that does not fit
    explicit bpe_model(bpe_description description);
    bpe_model(bpe_model&&) = default;  // a copy would look at the texts of the first
    bpe_model& operator=(bpe_model&&) = default;

    /// Appends the tokens of a word. Cost: linear in short words, n log n in long ones @pre words of characters are valid UTF-8
    /// @throws exit_error: the word has more symbols than 31 bits count
    void encode(std::string_view word, std::vector<token_id>& out) const;

    std::unordered_map<std::string, token_id> const& vocabulary() const { return description_.vocabulary; }
    std::optional<token_id> id(std::string_view token) const;
    bool is_byte_level() const { return description_.byte_level; }
    bool is_ignoring_merges() const { return description_.ignore_merges; }

    /// Whether no merge makes a token in which `mark` follows anything else: then a text can be cut before each mark that follows another character.
    bool begins_words_with(std::string_view mark) const;

private:
    struct merged {
        std::int32_t rank;
        token_id id;
    };
    struct symbol {
        token_id id;
        std::int32_t before;
        std::int32_t after;
    };
    struct slot {
        std::uint64_t pair;
        merged made;
    };

    bpe_description description_;
    std::unordered_map<std::string_view, token_id> words_;  ///< tokens as the text that they stand for
    std::vector<std::string> texts_;                        ///< what words_ looks at, for byte-level ones
    std::array<token_id, 256> bytes_{};                     ///< symbol of each byte, or its fallback; -1: none
    std::optional<token_id> unknown_;
    std::vector<slot> table_;  ///< open addressing, a power of two
    std::uint64_t mask_ = 0;

    void add_merges();
    merged const* find(token_id left, token_id right) const;
    void first_symbols(std::string_view word, std::vector<token_id>& symbols) const;
    void merge_short(std::vector<token_id>& symbols) const;
    void merge_long(std::vector<token_id>& symbols) const;
};

}  // namespace rheo::inline v0
