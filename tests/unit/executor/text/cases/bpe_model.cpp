// SPDX-License-Identifier: Apache-2.0
#include "executor/text/bpe_model.hpp"

#include <random>
#include <string>
#include <vector>

#include "executor/config/strict_json.hpp"
#include "executor/text/byte_level.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

/// The definition: the pair of the least rank, of those the leftmost, is joined until there is none.
std::vector<std::string> joined(std::vector<std::string> symbols, std::vector<bpe_description::merge> const& merges)
{
    for (;;) {
        auto best = merges.size();
        std::size_t at = 0;
        for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
            for (std::size_t rank = 0; rank < best; ++rank) {
                if (merges[rank].left == symbols[i] && merges[rank].right == symbols[i + 1]) {
                    best = rank;
                    at = i;
                }
            }
        }
        if (best == merges.size()) {
            return symbols;
        }
        symbols[at] += symbols[at + 1];
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
}

/// Letters a to d and merges of what was merged before, each once.
bpe_description random_description(std::mt19937& draw)
{
    bpe_description made;
    std::vector<std::string> tokens{"a", "b", "c", "d"};
    for (auto left = draw() % 30; left > 0; --left) {
        auto const& l = tokens[draw() % tokens.size()];
        auto const& r = tokens[draw() % tokens.size()];
        if (l.size() + r.size() <= 9 && std::find(tokens.begin(), tokens.end(), l + r) == tokens.end()) {
            made.merges.push_back({l, r});
            tokens.push_back(l + r);
        }
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        made.vocabulary.emplace(tokens[i], static_cast<token_id>(i));
    }
    return made;
}

std::string refusal(bpe_description description)
{
    try {
        bpe_model const taken{std::move(description)};
    } catch (json_error const& error) {
        return error.what();
    }
    return "taken";
}

}  // namespace

TEST_CASE("bpe_model: merges are those of the definition")
{
    std::mt19937 draw{3};
    for (int i = 0; i < 400; ++i) {
        auto const description = random_description(draw);
        bpe_model const model{description};
        for (std::size_t const length : {std::size_t{draw() % 12}, std::size_t{40 + draw() % 20}, std::size_t{120}}) {  // short words, and long ones by a heap
            std::string word;
            std::vector<std::string> symbols;
            for (std::size_t k = 0; k < length; ++k) {
                symbols.emplace_back(1, "abcd"[draw() % 4]);
                word += symbols.back();
            }
            std::vector<token_id> tokens;
            model.encode(word, tokens);
            std::vector<token_id> expected;
            for (auto const& symbol : joined(symbols, description.merges)) {
                expected.push_back(description.vocabulary.at(symbol));
            }
            REQUIRE(tokens == expected);
        }
    }
}

TEST_CASE("bpe_model: a known word is one token, merges ignored")
{
    bpe_description description{.vocabulary = {{"a", 0}, {"b", 1}, {"ab", 2}, {"aba", 3}}, .merges = {{"a", "b"}}};
    std::vector<token_id> tokens;
    bpe_model{description}.encode("aba", tokens);
    CHECK(tokens == std::vector<token_id>{2, 0});
    tokens.clear();
    description.ignore_merges = true;
    bpe_model{description}.encode("aba", tokens);
    CHECK(tokens == std::vector<token_id>{3});
}

TEST_CASE("bpe_model: unknown characters are bytes or unknown")
{
    bpe_description description{.vocabulary = {{"<unk>", 0}, {"a", 1}, {"<0xC3>", 2}, {"<0xA9>", 3}}, .unknown = "<unk>", .byte_fallback = true};
    auto const encoded = [&](std::string_view word) {
        std::vector<token_id> tokens;
        bpe_model{description}.encode(word, tokens);
        return tokens;
    };
    CHECK(encoded("a\xc3\xa9zza") == std::vector<token_id>{1, 2, 3, 0, 0, 1});
    description.fuse_unknown = true;
    CHECK(encoded("azzaz") == std::vector<token_id>{1, 0, 1, 0});
    description.byte_fallback = false;
    CHECK(encoded("a\xc3\xa9z") == std::vector<token_id>{1, 0});
    description.unknown = std::nullopt;
    CHECK(encoded("aza") == std::vector<token_id>{1, 1});
}

TEST_CASE("bpe_model: bytes are written as GPT-2 writes them")
{
    CHECK(byte_level_of(" a\n\xff") ==
          "\xc4\xa0"
          "a\xc4\x8a\xc3\xbf");
    for (int byte = 0; byte < 256; ++byte) {
        std::string const text(1, static_cast<char>(static_cast<unsigned char>(byte)));
        CHECK(bytes_of_byte_level(byte_level_of(text)) == text);
    }
    CHECK_FALSE(bytes_of_byte_level("a b"));
    CHECK_FALSE(bytes_of_byte_level("\xe2\x96\x81"));
}

TEST_CASE("bpe_model: merges across a mark of a blank are seen")
{
    auto const description = [](bpe_description::merge const& merge) {
        return bpe_description{.vocabulary = {{"_", 0}, {"a", 1}, {"_a", 2}, {"a_", 3}, {"__", 4}}, .merges = {merge}};
    };
    CHECK(bpe_model{description({"_", "a"})}.begins_words_with("_"));
    CHECK(bpe_model{description({"_", "_"})}.begins_words_with("_"));
    CHECK_FALSE(bpe_model{description({"a", "_"})}.begins_words_with("_"));
    CHECK_FALSE(bpe_model{description({"_", "a"})}.begins_words_with("#"));
}

TEST_CASE("bpe_model: what does not fit is named")
{
    CHECK(refusal({.vocabulary = {{"a", 0}, {"b", 1}}, .merges = {{"a", "b"}}}) == "has the merge 'a' and 'b' (number 0), but 'ab' is not in its vocabulary");
    CHECK(refusal({.vocabulary = {{"a", 0}}, .unknown = "<unk>"}) == "has model.unk_token = '<unk>', which is not in its vocabulary");
}
