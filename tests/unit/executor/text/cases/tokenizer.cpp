// SPDX-License-Identifier: Apache-2.0
#include "executor/text/tokenizer.hpp"

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/config/strict_json.hpp"
#include "executor/text/token_encoder.hpp"
#include "executor/text/utf8.hpp"
#include "in_chunks.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

nlohmann::json golden(std::string const& family)
{
    std::ifstream file{std::filesystem::path{RHEO_SOURCE_DIR} / "tests/unit/executor/text/golden" / (family + ".json"), std::ios::binary};
    return nlohmann::json::parse(file);
}

constexpr char const* families[] = {"gpt2", "llama3", "qwen2", "llama2", "mistral"};

std::string refusal(nlohmann::json const& json)
{
    try {
        tokenizer const taken{json.dump()};
    } catch (json_error const& error) {
        return error.what();
    }
    return "taken";
}

std::string random_text(std::mt19937& draw, std::vector<std::string> const& pieces)
{
    std::string text;
    for (auto left = 1 + draw() % 60; left > 0; --left) {
        if (draw() % 4 == 0) {
            auto const code = static_cast<char32_t>(draw() % (draw() % 2 == 0 ? 0x80 : 0x11000));
            append_utf8(text, code >= 0xd800 && code < 0xe000 ? U'?' : code);
        } else {
            auto const& piece = pieces[draw() % pieces.size()];
            auto begin = piece.empty() ? 0 : draw() % piece.size();
            while (begin > 0 && is_utf8_continuation(piece[begin])) {
                --begin;
            }
            auto end = std::min(piece.size(), begin + draw() % 20);
            while (end < piece.size() && is_utf8_continuation(piece[end])) {
                ++end;
            }
            text.append(piece, begin, end - begin);
        }
    }
    return text;
}

}  // namespace

TEST_CASE("tokenizer: tokens and texts are Hugging Face's")
{
    for (auto const* const family : families) {
        auto const vectors = golden(family);
        tokenizer const made{vectors["tokenizer"].dump()};
        CHECK(vectors["texts"].size() >= 20);
        for (auto const& row : vectors["texts"]) {
            auto const text = row["text"].get<std::string>();
            INFO(family << ": " << text);
            auto const tokens = made.encode(text);
            CHECK(tokens == row["ids"].get<std::vector<token_id>>());
            CHECK(made.decode(tokens, false) == row["decoded"].get<std::string>());
            CHECK(made.decode(tokens) == row["short"].get<std::string>());
            auto whole = made.parts().special.before;
            whole.insert(whole.end(), tokens.begin(), tokens.end());
            whole.insert(whole.end(), made.parts().special.after.begin(), made.parts().special.after.end());
            CHECK(whole == row["with_special"].get<std::vector<token_id>>());
        }
    }
}

TEST_CASE("tokenizer: byte-level tokens decode to their text")
{
    std::mt19937 draw{5};
    for (auto const* const family : {"gpt2", "llama3"}) {  // qwen2 composes characters first
        auto const vectors = golden(family);
        tokenizer const made{vectors["tokenizer"].dump()};
        token_encoder encoder{made};
        std::vector<std::string> pieces;
        for (auto const& row : vectors["texts"]) {
            pieces.push_back(row["text"].get<std::string>());
        }
        for (int i = 0; i < 2000; ++i) {
            auto const text = random_text(draw, pieces);
            std::vector<token_id> tokens;
            encoder.encode(text, tokens);
            REQUIRE(made.decode(tokens, false) == text);
        }
    }
}

TEST_CASE("tokenizer: chunks have the tokens of the whole text")
{
    std::mt19937 draw{6};
    for (auto const* const family : families) {
        auto const vectors = golden(family);
        tokenizer const made{vectors["tokenizer"].dump()};
        CHECK(made.cuts() == (std::string{family}.starts_with("llama2") || std::string{family} == "mistral" ? tokenizer::cutting::before_blanks
                                                                                                            : tokenizer::cutting::between_matches));
        token_encoder encoder{made};
        std::vector<std::string> pieces;
        for (auto const& row : vectors["texts"]) {
            pieces.push_back(row["text"].get<std::string>());
        }
        for (int i = 0; i < 500; ++i) {
            auto const text = random_text(draw, pieces);
            std::vector<token_id> tokens;
            encoder.encode(text, tokens);
            for (std::size_t const size : {1U, 5U, 30U, 100U}) {
                INFO(family << ", " << size << ": " << text);
                REQUIRE(encode_in_chunks(made, encoder, text, size) == tokens);
            }
        }
    }
}

TEST_CASE("tokenizer: tokens within tokens are found at a cut")
{
    std::mt19937 draw{7};
    for (bool const normalized : {false, true}) {
        auto json = golden("qwen2")["tokenizer"];
        auto id = 1000;
        for (auto const* const content : {"abx", "xabxy", "abxy xa", "yx", "xyxyx", "b  b", "\nb\n"}) {
            json["added_tokens"].push_back({{"id", id++},
                                            {"content", content},
                                            {"special", false},
                                            {"normalized", normalized},
                                            {"single_word", false},
                                            {"lstrip", false},
                                            {"rstrip", false}});
        }
        tokenizer const made{json.dump()};
        token_encoder encoder{made};
        for (int i = 0; i < 10'000; ++i) {
            std::string text;
            for (auto left = draw() % 40; left > 0; --left) {
                text += (i % 2 == 0 ? "abxy \n" : "aaxyxy")[draw() % 6];
            }
            std::vector<token_id> tokens;
            encoder.encode(text, tokens);
            for (std::size_t const size : {1U, 2U, 6U}) {
                INFO(normalized << ", " << size << ": '" << text << "'");
                REQUIRE(encode_in_chunks(made, encoder, text, size) == tokens);
            }
        }
    }
}

TEST_CASE("tokenizer: nothing is cut where tokens look around them")
{
    auto json = golden("gpt2")["tokenizer"];
    json["added_tokens"][0]["lstrip"] = true;
    CHECK(tokenizer{json.dump()}.cuts() == tokenizer::cutting::never);
    json = golden("gpt2")["tokenizer"];
    json["normalizer"] = {{"type", "Lowercase"}};
    CHECK(tokenizer{json.dump()}.cuts() == tokenizer::cutting::never);
    json["normalizer"] = {{"type", "NFC"}};
    CHECK(tokenizer{json.dump()}.cuts() == tokenizer::cutting::between_matches);
    json["pre_tokenizer"]["add_prefix_space"] = true;
    CHECK(tokenizer{json.dump()}.cuts() == tokenizer::cutting::never);
    json = golden("llama2")["tokenizer"];
    json["model"]["vocab"]["x\xe2\x96\x81"] = 100'000;
    json["model"]["merges"].push_back({"x", "\xe2\x96\x81"});
    json["model"]["vocab"]["x"] = 100'001;
    CHECK(tokenizer{json.dump()}.cuts() == tokenizer::cutting::never);
}

TEST_CASE("tokenizer: what is not supported is named with its value")
{
    auto const with = [](char const* pointer, nlohmann::json const& value) {
        auto json = golden("gpt2")["tokenizer"];
        json[nlohmann::json::json_pointer{pointer}] = value;
        return refusal(json);
    };
    CHECK(with("/model/type", "WordPiece") == "has model.type = 'WordPiece', which rheo does not support; expected one of: BPE");
    CHECK(with("/model/dropout", 0.1) == "has model.dropout = 0.1, which rheo does not support; expected null");
    CHECK(with("/model/end_of_word_suffix", "</w>") == "has model.end_of_word_suffix = \"</w>\", which rheo does not support; expected null");
    CHECK_THAT(with("/truncation", {{"max_length", 8}}), Catch::Matchers::ContainsSubstring("has tokenizer.truncation = {\"max_length\":8}"));
    CHECK_THAT(with("/extra", 1), Catch::Matchers::ContainsSubstring("has tokenizer.extra = 1, which rheo does not support"));
    CHECK_THAT(with("/decoder/type", "CTC"), Catch::Matchers::ContainsSubstring("has decoder.type = 'CTC'"));
    CHECK_THAT(with("/post_processor/type", "BertProcessing"), Catch::Matchers::ContainsSubstring("has post_processor.type = 'BertProcessing'"));
    CHECK_THAT(with("/model/merges/0", "a b c"), Catch::Matchers::ContainsSubstring("has \"a b c\" in model.merges"));
    CHECK_THAT(with("/model/vocab/new", 5), Catch::Matchers::ContainsSubstring("has two tokens with id 5"));
    CHECK_THAT(with("/model/vocab/new", -5), Catch::Matchers::ContainsSubstring("has a 'vocab' that is not a whole number"));
    auto far = golden("gpt2")["tokenizer"]["added_tokens"];
    for (auto const id : {1'000'000, 1'900'000}) {  // each within reach of the one before
        far.push_back({{"id", id},
                       {"content", std::to_string(id)},
                       {"special", false},
                       {"normalized", false},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false}});
    }
    CHECK_THAT(with("/added_tokens", far), Catch::Matchers::ContainsSubstring("with id 1900000, far beyond its vocabulary"));
    CHECK_THAT(with("/version", "2.0"), Catch::Matchers::ContainsSubstring("version"));
}

TEST_CASE("tokenizer: a token that there is none of is named")
{
    tokenizer const made{golden("gpt2")["tokenizer"].dump()};
    CHECK(made.vocabulary() == 700);
    CHECK(made.id("<|endoftext|>") == 0);
    CHECK(made.token(0) == "<|endoftext|>");
    std::vector<token_id> const wrong{1, 700};
    CHECK_THROWS_WITH(made.decode(wrong), "tokenizer: there is no token 700 among 700");
}
