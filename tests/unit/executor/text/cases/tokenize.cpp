// SPDX-License-Identifier: Apache-2.0
#include "executor/text/corpus/tokenize.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/data/token_files.hpp"
#include "executor/text/utf8.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

nlohmann::json golden(std::string const& family)
{
    std::ifstream file{std::filesystem::path{RHEO_SOURCE_DIR} / "tests/unit/executor/text/golden" / (family + ".json"), std::ios::binary};
    return nlohmann::json::parse(file);
}

std::vector<std::int32_t> tokens_of(std::vector<std::string> const& files)
{
    token_files const read{files};
    std::vector<std::int32_t> all;
    for (auto const& piece : read.pieces()) {
        for (std::int64_t i = 0; i < piece.count; ++i) {
            all.push_back(read.token(piece, i));
        }
    }
    return all;
}

/// A text of many scripts, with long lines, long runs of white space, and added tokens.
std::string long_text(std::mt19937& draw, nlohmann::json const& texts, std::size_t size)
{
    std::string text = "begins";  // with no byte order mark, which is left out
    while (text.size() < size) {
        text += texts[draw() % texts.size()]["text"].get<std::string>();
        text += draw() % 3 == 0 ? std::string(draw() % 400, "\n \t"[draw() % 3]) : draw() % 2 == 0 ? "\n" : "";
    }
    return text;
}

}  // namespace

TEST_CASE("tokenize: batches and threads change no token")
{
    std::mt19937 draw{8};
    temporary_folder const folder;
    for (auto const* const family : {"gpt2", "llama3", "qwen2", "llama2", "mistral"}) {
        auto const vectors = golden(family);
        tokenizer const made{vectors["tokenizer"].dump()};
        text_model const model{made};
        std::vector<std::string> documents{long_text(draw, vectors["texts"], 60'000), "short", long_text(draw, vectors["texts"], 9'000)};
        std::vector<std::string> paths;
        std::vector<token_id> expected;
        for (std::size_t i = 0; i < documents.size(); ++i) {
            paths.push_back(folder.write(family + std::to_string(i), documents[i]));
            auto const& special = made.parts().special;
            expected.insert(expected.end(), special.before.begin(), special.before.end());
            auto const tokens = made.encode(documents[i]);
            expected.insert(expected.end(), tokens.begin(), tokens.end());
            expected.push_back(1);
        }
        std::int64_t recut = 0;
        for (int const threads : {1, 3}) {
            for (std::size_t const batch : {300U, 5'000U, 1U << 20}) {
                for (std::size_t const context : {8U, 2048U}) {
                    token_file_writer out{(folder.path / "tokens.bin").string(), tokens_of_16_bits};
                    auto const counts =
                        tokenize_files(model, paths, {.document_token = 1, .threads = threads, .batch_bytes = batch, .context_bytes = context}, out);
                    CHECK(counts.documents == 3);
                    CHECK(counts.replaced == 0);
                    recut += counts.recut;
                    INFO(family << ", " << threads << " threads, batches of " << batch << ", context of " << context);
                    auto const tokens = tokens_of(out.finish());
                    auto const differ = std::mismatch(tokens.begin(), tokens.end(), expected.begin(), expected.end());
                    CHECK(tokens.size() == expected.size());
                    CHECK(differ.first - tokens.begin() == static_cast<std::ptrdiff_t>(tokens.size()));
                }
            }
        }
        CHECK((recut > 0) == (made.cuts() == tokenizer::cutting::between_matches));  // wrong guesses were made, and put right
    }
}

TEST_CASE("tokenize: what is not UTF-8 is replaced as in the whole text")
{
    std::mt19937 draw{9};
    temporary_folder const folder;
    auto const vectors = golden("gpt2");
    tokenizer const made{vectors["tokenizer"].dump()};
    auto text = long_text(draw, vectors["texts"], 20'000);
    for (int i = 0; i < 400; ++i) {
        text[draw() % text.size()] = static_cast<char>(draw());
    }
    auto valid = text;
    auto const replaced = replace_invalid(valid);
    REQUIRE(replaced > 100);
    auto const path = folder.write("text", text);
    for (std::size_t const batch : {200U, 3'000U, 1U << 20}) {
        token_file_writer out{(folder.path / "tokens.bin").string(), tokens_of_16_bits};
        auto const counts = tokenize_files(text_model{made}, {path}, {.threads = 2, .batch_bytes = batch, .context_bytes = 16}, out);
        CHECK(counts.replaced == replaced);
        CHECK(tokens_of(out.finish()) == made.encode(valid));
    }
    token_file_writer out{(folder.path / "tokens.bin").string(), tokens_of_16_bits};
    CHECK_THROWS_AS(tokenize_files(text_model{made}, {path}, {.refuse_invalid = true}, out), exit_error);
}

TEST_CASE("tokenize: the file with bytes that are not UTF-8 is named")
{
    temporary_folder const folder;
    tokenizer const made{golden("gpt2")["tokenizer"].dump()};
    std::vector<std::string> const paths{folder.write("a", "good"), folder.write("b", "bad \xff"), folder.write("c", "good")};  // one batch
    token_file_writer out{(folder.path / "tokens.bin").string(), tokens_of_16_bits};
    CHECK_THROWS_WITH(tokenize_files(text_model{made}, paths, {.refuse_invalid = true}, out),
                      Catch::Matchers::StartsWith("text: '" + paths[1] + "' has bytes that are not UTF-8, the first is 0xff"));
}

TEST_CASE("tokenize: a word of many stretches is one word")
{
    std::mt19937 draw{10};
    temporary_folder const folder;
    for (auto const* const family : {"gpt2", "qwen2", "llama2"}) {
        tokenizer const made{golden(family)["tokenizer"].dump()};
        std::string text = "begins ";
        for (auto const letters : {20'000, 3, 7'000, 150}) {
            for (int i = 0; i < letters; ++i) {
                text += static_cast<char>('a' + draw() % 26);
            }
            text += ' ';
        }
        auto const path = folder.write(family, text);
        for (std::size_t const batch : {100U, 1'500U}) {
            token_file_writer out{(folder.path / "tokens.bin").string(), tokens_of_16_bits};
            tokenize_files(text_model{made}, {path}, {.special_tokens = false, .threads = 2, .batch_bytes = batch, .context_bytes = 64}, out);
            CHECK((tokens_of(out.finish()) == made.encode(text)));
        }
    }
}

TEST_CASE("tokenize: JSON lines are documents, in order")
{
    temporary_folder const folder;
    auto const vectors = golden("llama2");
    tokenizer const made{vectors["tokenizer"].dump()};
    std::string lines;
    std::vector<token_id> expected;
    for (int i = 0; i < 300; ++i) {
        auto const text = vectors["texts"][static_cast<std::size_t>(i) % vectors["texts"].size()]["text"].get<std::string>();
        lines += nlohmann::json{{"id", i}, {"body", text}}.dump() + (i % 7 == 0 ? "\r\n\n" : "\n");
        auto const tokens = made.encode(text);
        expected.insert(expected.end(), tokens.begin(), tokens.end());
        expected.push_back(2);
    }
    auto const path = folder.write("texts.jsonl", lines);
    for (std::size_t const batch : {100U, 1U << 20}) {
        token_file_writer out{(folder.path / "tokens.bin").string(), tokens_of_16_bits};
        auto const counts =
            tokenize_files(text_model{made}, {path}, {.field = "body", .document_token = 2, .special_tokens = false, .threads = 2, .batch_bytes = batch}, out);
        CHECK(counts.documents == 300);
        CHECK(tokens_of(out.finish()) == expected);
    }
    token_file_writer out{(folder.path / "tokens.bin").string(), tokens_of_16_bits};
    auto const refusal = [&](std::string const& content) -> std::string {
        try {
            tokenize_files(text_model{made}, {folder.write("bad.jsonl", content)}, {}, out);
        } catch (exit_error const& error) {
            return error.what();
        }
        return "taken";
    };
    auto const at = "text: '" + (folder.path / "bad.jsonl").string() + "', line 2, ";
    auto const tail = std::string{"; expected an object with a text 'text' on each line (--field names another)"};
    CHECK(refusal("{\"text\": \"a\"}\n{\"body\": \"b\"}\n") == at + "has no 'text'" + tail);
    CHECK(refusal("{\"text\": \"a\"}\n{\"text\": 3}\n") == at + "has a 'text' that is not a text" + tail);
    CHECK_THAT(refusal("{\"text\": \"a\"}\n{\"text\": \"b\n"), Catch::Matchers::ContainsSubstring("line 2, is not JSON"));
}

TEST_CASE("tokenize: files are whole, numbered where there are more")
{
    temporary_folder const folder;
    auto const path = (folder.path / "t.bin").string();
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < 1'000'000; ++i) {
        tokens.push_back(i % 70'000);
    }
    {
        token_file_writer out{path, tokens_of_32_bits};
        out.write(tokens);
        CHECK_FALSE(std::filesystem::exists(path));
        for (auto const& entry : std::filesystem::directory_iterator{folder.path}) {
            CHECK(entry.path().filename().string().starts_with(".t.bin."));  // hidden until it is whole
        }
        CHECK(out.finish() == std::vector{path});
    }
    CHECK(tokens_of({path}) == tokens);
    std::filesystem::remove(path);
    {
        token_file_writer out{path, tokens_of_32_bits, 300'000};
        out.write(tokens);
        auto const names = out.finish();
        CHECK(names.size() == 4);
        CHECK(names.back() == (folder.path / "t.00003.bin").string());
        CHECK(tokens_of(names) == tokens);
        CHECK_FALSE(std::filesystem::exists(path));
    }
    {
        token_file_writer out{(folder.path / "gone.bin").string(), tokens_of_16_bits};
        out.write(tokens);
    }
    for (auto const& entry : std::filesystem::directory_iterator{folder.path}) {
        CHECK_THAT(entry.path().string(), !Catch::Matchers::ContainsSubstring("gone") && !Catch::Matchers::ContainsSubstring("partial"));
    }
    CHECK_THROWS_AS((token_file_writer{(folder.path / "no" / "such.bin").string(), tokens_of_16_bits}), exit_error);
    CHECK_THROWS_WITH((token_file_writer{folder.path.string(), tokens_of_16_bits}), Catch::Matchers::ContainsSubstring("Is a directory"));
}
