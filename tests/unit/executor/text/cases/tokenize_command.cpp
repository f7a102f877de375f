// SPDX-License-Identifier: Apache-2.0
// `rheo tokenize` as its users start it: token files of texts, trained tokenizers, each refusal.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/data/token_files.hpp"
#include "executor/text/corpus/text_model.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

nlohmann::json golden(std::string const& family)
{
    std::ifstream file{std::filesystem::path{RHEO_SOURCE_DIR} / "tests/unit/executor/text/golden" / (family + ".json"), std::ios::binary};
    return nlohmann::json::parse(file);
}

std::vector<std::int32_t> tokens_of(std::string const& file)
{
    token_files const read{{file}};
    auto const& piece = read.pieces().front();
    std::vector<std::int32_t> all;
    for (std::int64_t i = 0; i < piece.count; ++i) {
        all.push_back(read.token(piece, i));
    }
    return all;
}

std::string refused(temporary_folder const& folder, std::string const& arguments, int exit_code)
{
    auto const shown = run_rheo(folder, "tokenize " + arguments);
    CHECK(shown.exit_code == exit_code);
    CHECK(shown.out.empty());
    CHECK_FALSE(std::filesystem::exists(folder.path / "t.bin"));
    return shown.err;
}

std::string some_text()
{
    std::string text;
    for (int i = 0; i < 400; ++i) {
        text += "the newer and wider towers of " + std::to_string(i % 17) + " lower rooms, no. " + std::to_string(i % 5) + "\n";
    }
    return text;
}

}  // namespace

TEST_CASE("tokenize_command: texts become a token file")
{
    temporary_folder const folder;
    folder.write("tokenizer.json", golden("llama3")["tokenizer"].dump());
    folder.write("texts/a.txt",
                 "\xef\xbb\xbf"
                 "first text\n");  // the byte order mark is left out
    folder.write("texts/b.jsonl", "{\"text\": \"second\"}\n{\"text\": \"third\"}\n");
    folder.write("texts/empty.txt", "");
    auto const shown = run_rheo(folder, "tokenize . texts --out t.bin");
    CAPTURE(shown.err);
    REQUIRE(shown.exit_code == 0);
    CHECK_THAT(shown.out, Catch::Matchers::ContainsSubstring("of 16 bits from 3 documents in 3 files"));
    CHECK_THAT(shown.out, Catch::Matchers::ContainsSubstring("documents end with '<|end_of_text|>' (1); model.vocabulary = 800\n"));
    tokenizer const made{golden("llama3")["tokenizer"].dump()};
    std::vector<token_id> expected;
    for (auto const* const text : {"first text\n", "second", "third"}) {
        expected.push_back(0);  // <|begin_of_text|>, as the tokenizer's template has it
        auto const tokens = made.encode(text);
        expected.insert(expected.end(), tokens.begin(), tokens.end());
        expected.push_back(1);
    }
    CHECK(tokens_of((folder.path / "t.bin").string()) == expected);
    auto const plain = run_rheo(folder, "tokenize tokenizer.json texts/a.txt --out p.bin --document-token none --no-special-tokens --json --threads 2");
    REQUIRE(plain.exit_code == 0);
    CHECK(tokens_of((folder.path / "p.bin").string()) == made.encode("first text\n"));
    auto const answer = nlohmann::json::parse(plain.out);
    CHECK(answer["tokens"] == made.encode("first text\n").size());
    CHECK(answer["document_token"].is_null());
    CHECK(answer["token_bits"] == 16);
    auto const large = run_rheo(folder, "tokenize tokenizer.json texts --out s.bin --shard-tokens 4");
    CHECK(large.exit_code == 0);
    CHECK(std::filesystem::exists(folder.path / "s.00001.bin"));
    CHECK_FALSE(std::filesystem::exists(folder.path / "s.bin"));
}

TEST_CASE("tokenize_command: large vocabularies have tokens of 32 bits")
{
    temporary_folder const folder;
    auto json = golden("gpt2")["tokenizer"];
    json["added_tokens"].push_back(
        {{"id", 70'000}, {"content", "<far>"}, {"special", true}, {"normalized", false}, {"single_word", false}, {"lstrip", false}, {"rstrip", false}});
    folder.write("tokenizer.json", json.dump());
    folder.write("a.txt", "a<far>");
    auto const shown = run_rheo(folder, "tokenize tokenizer.json a.txt --out t.bin --document-token '<far>'");
    CAPTURE(shown.err);
    REQUIRE(shown.exit_code == 0);
    CHECK_THAT(shown.out, Catch::Matchers::ContainsSubstring("3 tokens of 32 bits"));
    auto const tokens = tokens_of((folder.path / "t.bin").string());
    REQUIRE(tokens.size() == 3);
    CHECK(tokens[1] == 70'000);
    CHECK(tokens[2] == 70'000);
    auto const file = folder.read("t.bin");
    std::int32_t header[3];
    std::memcpy(header, file.data(), sizeof header);
    CHECK(header[0] == 20240801);  // as llm.c writes Llama 3's
    CHECK(header[1] == 7);
    CHECK(header[2] == 3);
}

TEST_CASE("tokenize_command: tokenizers are trained on texts")
{
    temporary_folder const folder;
    folder.write("a.txt", some_text());
    folder.write("b.jsonl", nlohmann::json{{"text", some_text()}}.dump() + "\n");
    for (auto const* const threads : {"1", "3"}) {
        auto const shown =
            run_rheo(folder, std::string{"tokenize --train bpe --vocabulary 300 a.txt b.jsonl --out bpe"} + threads + ".json --threads " + threads);
        CAPTURE(shown.err);
        REQUIRE(shown.exit_code == 0);
        CHECK_THAT(shown.out, Catch::Matchers::ContainsSubstring(".json: 300 tokens, trained on 0.0 MB"));
    }
    CHECK(folder.read("bpe1.json") == folder.read("bpe3.json"));
    auto const answer = nlohmann::json::parse(run_rheo(folder, "tokenize --train bpe --vocabulary 290 a.txt --out small.json --json").out);
    CHECK(answer == nlohmann::json{{"file", "small.json"}, {"vocabulary", 290}, {"bytes", some_text().size()}});
    REQUIRE(run_rheo(folder, "tokenize bpe1.json a.txt --out t.bin").exit_code == 0);
    CHECK(tokens_of((folder.path / "t.bin").string()).size() < some_text().size() / 2);
    for (std::string const kind : {"unigram", "sentencepiece-bpe"}) {
        auto const shown = run_rheo(folder, "tokenize --train " + kind + " --vocabulary 290 a.txt b.jsonl --out " + kind + ".model");
        CAPTURE(shown.err);
        REQUIRE(shown.exit_code == 0);
        folder.write("c.txt", "the lower towers\nwider");
        REQUIRE(run_rheo(folder, "tokenize " + kind + ".model c.txt --out t.bin").exit_code == 0);
        auto const tokens = tokens_of((folder.path / "t.bin").string());
        auto const model = std::get<sentencepiece_model>(open_text_model((folder.path / (kind + ".model")).string()));
        CHECK(model.vocabulary() == 290);
        std::vector<token_id> expected;
        model.encode("the lower towers\nwider", expected);
        expected.push_back(*model.end_of_text());
        CHECK(tokens == expected);
        CHECK(model.decode({tokens.data(), tokens.size() - 1}) == "the lower towers\nwider");
    }
}

TEST_CASE("tokenize_command: what is wrong is named, nothing is left")
{
    temporary_folder const folder;
    folder.write("tokenizer.json", golden("gpt2")["tokenizer"].dump());
    folder.write("a.txt", "a\xff");
    folder.write("bad.json", R"({"model": {"type": "WordPiece"}})");
    folder.write("bad.model", "no model");
    folder.write("empty.txt", "");
    CHECK_THAT(refused(folder, "tokenizer.json --out t.bin", 2), Catch::Matchers::ContainsSubstring("needs a tokenizer and files"));
    CHECK_THAT(refused(folder, "tokenizer.json none.txt --out t.bin", 4), Catch::Matchers::ContainsSubstring("'none.txt' does not exist"));
    CHECK_THAT(refused(folder, "bad.json a.txt --out t.bin", 4), Catch::Matchers::ContainsSubstring("bad.json: it has model.type = 'WordPiece'"));
    CHECK_THAT(refused(folder, "bad.model a.txt --out t.bin", 4), Catch::Matchers::ContainsSubstring("bad.model: "));
    CHECK_THAT(refused(folder, "tokenizer.json a.txt --out t.bin --invalid refuse", 4), Catch::Matchers::ContainsSubstring("the first is 0xff"));
    CHECK_THAT(refused(folder, "tokenizer.json a.txt --out t.bin --document-token '<none>'", 2), Catch::Matchers::ContainsSubstring("has no token '<none>'"));
    CHECK_THAT(refused(folder, "tokenizer.json empty.txt --out t.bin", 4), Catch::Matchers::ContainsSubstring("hold no text"));
    CHECK_THAT(refused(folder, "tokenizer.json a.txt --out tokens", 2), Catch::Matchers::ContainsSubstring("ends in .bin"));
    CHECK_THAT(refused(folder, "--train bpe a.txt --out t.bin", 2), Catch::Matchers::ContainsSubstring("--train needs --vocabulary"));
    CHECK_THAT(refused(folder, "--train bpe --vocabulary 300 empty.txt --out t.bin", 4), Catch::Matchers::ContainsSubstring("hold no text"));
    for (auto const& entry : std::filesystem::directory_iterator{folder.path}) {
        CHECK_THAT(entry.path().string(), !Catch::Matchers::ContainsSubstring("partial"));
    }
}
