// SPDX-License-Identifier: Apache-2.0
// `rheo evaluate` and `rheo generate` as users start them.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/huggingface/export.hpp"
#include "executor/inference/evaluate.hpp"
#include "executor/inference/window_loss.hpp"
#include "small_models.hpp"
#include "support/rheo_command.hpp"

using namespace rheo;
using namespace small_models;

namespace {

void refused(outcome const& result, int code, std::string const& message)
{
    CHECK(result.exit_code == code);
    CHECK(result.out.empty());
    CHECK(result.err == "rheo: " + message + "\n");
}

run_config of_bytes(model_family family)
{
    auto config = base(family);
    config.model.vocabulary = 256;
    return config;
}

}  // namespace

TEST_CASE("generate: a run, a checkpoint, weights: one text")
{
    temporary_folder const folder;
    auto const run = write_checkpoint(folder, of_bytes(model_family::llama));
    export_huggingface(checkpoint{run / "step-1"}, folder.path / "exported");
    std::string const how = " --prompt 'Once upon' --tokens 20 --seed 3 --temperature 0.8 --json";
    auto const from_run = run_rheo(folder, "generate run" + how);
    REQUIRE(from_run.exit_code == 0);
    auto const made = nlohmann::json::parse(from_run.out);
    CHECK(made.at("model") == "run/step-1");
    CHECK(made.at("generated_tokens") == 20);
    CHECK(made.at("texts").at(0).at("prompt") == "Once upon");
    CHECK(made.at("texts").at(0).at("tokens").size() == 20);
    CHECK(made.at("texts").at(0).at("ended") == false);
    for (auto const* const other : {"run/step-1", "exported", "run --threads 3", "run --no-cache"}) {
        auto const again = run_rheo(folder, std::string{"generate "} + other + how);
        REQUIRE(again.exit_code == 0);
        CHECK(nlohmann::json::parse(again.out).at("texts") == made.at("texts"));
    }
    auto const text = run_rheo(folder, "generate run --prompt 'Once upon' --tokens 5 --temperature 0");
    CHECK(text.exit_code == 0);
    CHECK(text.out.starts_with("Once upon"));
    CHECK_THAT(text.err, Catch::Matchers::ContainsSubstring("rheo: 5 tokens in "));
}

TEST_CASE("generate: a terminal gets the same text in pieces")
{
    if (std::system("command -v script >/dev/null") != 0) {
        WARN("there is no script (util-linux), which makes a terminal");
        return;
    }
    temporary_folder const folder;
    write_checkpoint(folder, of_bytes(model_family::llama));
    std::string const how = "generate run --prompt 'Once upon' --tokens 12 --seed 3 --top-k 3";
    auto const piped = run_rheo(folder, how);
    REQUIRE(piped.exit_code == 0);
    auto const program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "rheo";
    auto const command = "cd '" + folder.path.string() +
                         "' && env -u OMPI_COMM_WORLD_RANK -u PMIX_RANK -u PMI_RANK timeout 60 script -qec \"stty -opost; exec '" + program.string() + "' " +
                         how + " 2>/dev/null\" /dev/null >shown </dev/null";
    REQUIRE(std::system(command.c_str()) == 0);
    CHECK(folder.read("shown") == piped.out);
}

TEST_CASE("generate: prompts of a file, as texts and as tokens")
{
    temporary_folder const folder;
    write_checkpoint(folder, of_bytes(model_family::gpt2));
    folder.write("prompts.txt", "first\n\nsecond\r\n");
    folder.write("prompts.jsonl", "{\"text\": \"first\"}\n{\"tokens\": [115, 101, 99, 111, 110, 100]}\n");
    auto const lines = run_rheo(folder, "generate run --prompts prompts.txt --tokens 7 --json");
    auto const json = run_rheo(folder, "generate run --prompts prompts.jsonl --tokens 7 --batch 1 --json");
    REQUIRE(lines.exit_code == 0);
    REQUIRE(json.exit_code == 0);
    auto const made = nlohmann::json::parse(lines.out);
    CHECK(made.at("texts").size() == 2);
    CHECK(made.at("texts").at(1).at("prompt") == "second");
    CHECK(made.at("texts") == nlohmann::json::parse(json.out).at("texts"));
    folder.write("bad.jsonl", "{\"text\": \"first\"}\n{\"txt\": 1}\n");
    auto const bad = run_rheo(folder, "generate run --prompts bad.jsonl");
    CHECK(bad.exit_code == 4);
    CHECK_THAT(bad.err, Catch::Matchers::ContainsSubstring("'bad.jsonl', line 2,"));
}

TEST_CASE("generate: refusals are one sentence")
{
    temporary_folder const folder;
    write_checkpoint(folder, of_bytes(model_family::gpt2));
    refused(run_rheo(folder, "generate run"), 2, "generate needs --prompt TEXT, or --prompts FILE with a prompt per line");
    refused(run_rheo(folder, "generate run --prompt 0123456789 --tokens 31"), 2,
            "prompt 1 has 10 tokens, with the 31 that are to follow 41: the model's context is 40");
    refused(run_rheo(folder, "generate none --prompt x"), 4, "'none' is neither a checkpoint nor a run folder with a usable one");
    temporary_folder const other;
    write_checkpoint(other, base(model_family::gpt2));
    refused(run_rheo(other, "generate run --prompt x"), 2,
            "the model of 'run/step-1' has 61 tokens, which are not bytes; name its tokenizer with --tokenizer FILE");
    other.write("p.jsonl", "{\"tokens\": [60, 61]}");
    refused(run_rheo(other, "generate run --prompts p.jsonl"), 4,
            "prompt 1 has the token 61, but the model of 'run/step-1' has 61 tokens: is this its tokenizer?");
    other.write("p.jsonl", "{\"tokens\": [60, 1]}");
    auto const numbers = run_rheo(other, "generate run --prompts p.jsonl --tokens 3 --temperature 0");
    CHECK(numbers.exit_code == 0);
    CHECK(std::count(numbers.out.begin(), numbers.out.end(), ' ') == 2);  // three numbers, since there is no text
}

TEST_CASE("evaluate: files in text and as JSON")
{
    temporary_folder const folder;
    auto const run = write_checkpoint(folder, of_bytes(model_family::qwen3));
    folder.write("a.txt", "a text of some length, which is read in windows");
    auto const json = run_rheo(folder, "evaluate run a.txt --stride 4 --json");
    REQUIRE(json.exit_code == 0);
    auto const result = nlohmann::json::parse(json.out);
    loaded_model model{run, model_grid::of_run};
    text_coder bytes{""};
    auto const expected = evaluate_files(model, bytes, {(folder.path / "a.txt").string()}, {.stride = 4});
    CHECK(result.at("loss") == expected.nats());
    CHECK(result.at("bits_per_byte") == *expected.bits_per_byte());
    CHECK(result.at("perplexity") == expected.perplexity());
    CHECK(result.at("tokens") == 46);
    CHECK(result.at("window") == 16);
    CHECK(result.at("stride") == 4);
    auto const text = run_rheo(folder, "evaluate run a.txt --stride 4");
    CHECK(text.exit_code == 0);
    CHECK_THAT(text.out, Catch::Matchers::StartsWith("run/step-1: 46 tokens predicted in windows of 16, one every 4\nloss "));
    CHECK_THAT(text.out, Catch::Matchers::ContainsSubstring(" bits per byte\n"));
    refused(run_rheo(folder, "evaluate run none.txt"), 4, "data: 'none.txt' does not exist");
}

TEST_CASE("evaluate: choices")
{
    temporary_folder const folder;
    write_checkpoint(folder, of_bytes(model_family::llama));
    folder.write(
        "q.jsonl",
        "{\"context\": \"sky\", \"choices\": [\" blue\", \" red\"], \"answer\": 0}\n{\"context\": \"sky\", \"choices\": [\" blue\", \" red\"], \"answer\": 1}\n");
    auto const json = run_rheo(folder, "evaluate run q.jsonl --choices --json");
    REQUIRE(json.exit_code == 0);
    auto const result = nlohmann::json::parse(json.out);
    CHECK(result.at("questions") == 2);
    CHECK(result.at("acc") == 0.5);  // the same answer to both
    CHECK(result.at("acc_norm") == 0.5);
    CHECK(result.at("acc_stderr") == 0.5);
    refused(run_rheo(folder, "evaluate run --choices"), 2, "--choices needs files with questions, one per line, as JSON");
}

TEST_CASE("evaluate: a tokenizer's documents, and its bytes")
{
    temporary_folder const folder;
    std::string words;
    for (int i = 0; i < 40; ++i) {
        words += "the cat sat on the mat number " + std::to_string(i) + " and then it slept.\n";
    }
    folder.write("words.txt", words);
    REQUIRE(run_rheo(folder, "tokenize --train bpe --vocabulary 300 words.txt --out tokenizer.json").exit_code == 0);
    auto config = base(model_family::qwen2);
    config.model.vocabulary = 300;
    auto const run = write_checkpoint(folder, config);
    std::string const first = "the cat sat on the mat and slept, then it sat again on the mat.";
    std::string const second = "number 7";
    folder.write("texts.jsonl", "{\"text\": \"" + first + "\"}\n{\"text\": \"" + second + "\"}\n");

    text_coder coder{(folder.path / "tokenizer.json").string()};
    loaded_model model{run, model_grid::of_run};
    window_loss sum{model, 16};
    std::int64_t bytes = 0;
    for (auto const& text : {first, second}) {
        auto const tokens = coder.encode_whole(text);
        CHECK(coder.decode(tokens) == text);
        sum.add(tokens, 16);
        bytes += std::ssize(text) - std::ssize(coder.decode(std::span{tokens}.first(1)));
    }
    auto const expected = sum.loss();
    auto const of_texts = run_rheo(folder, "evaluate run texts.jsonl --tokenizer tokenizer.json --json");
    REQUIRE(of_texts.exit_code == 0);
    auto const result = nlohmann::json::parse(of_texts.out);
    CHECK(result.at("documents") == 2);
    CHECK(result.at("tokens") == expected.targets);
    CHECK(result.at("loss") == mean_loss(expected));
    CHECK(result.at("bytes") == bytes);
    CHECK(result.at("bits_per_byte") == Approx(mean_loss(expected) * static_cast<double>(expected.targets) / std::log(2.0) / static_cast<double>(bytes)));

    // A token file has the same tokens; how many bytes they stand for, its tokenizer says.
    folder.write("first.txt", first);
    REQUIRE(run_rheo(folder, "tokenize tokenizer.json first.txt --document-token none --out first.bin").exit_code == 0);
    auto const by_text = nlohmann::json::parse(run_rheo(folder, "evaluate run first.txt --tokenizer tokenizer.json --json").out);
    auto const by_tokens = nlohmann::json::parse(run_rheo(folder, "evaluate run first.bin --tokenizer tokenizer.json --json").out);
    auto const alone = nlohmann::json::parse(run_rheo(folder, "evaluate run first.bin --json").out);
    for (auto const* const key : {"loss", "tokens", "bytes", "bits_per_byte"}) {
        CHECK(by_tokens.at(key) == by_text.at(key));
    }
    CHECK(alone.at("loss") == by_text.at("loss"));
    CHECK(alone.at("bytes").is_null());
    CHECK(alone.at("bits_per_byte").is_null());
    CHECK(run_rheo(folder, "evaluate run words.txt").exit_code == 2);  // not bytes
}

TEST_CASE("generate: a tokenizer's text, and its end")
{
    temporary_folder const folder;
    folder.write("words.txt", "one two three four five six seven eight nine ten\n");
    REQUIRE(run_rheo(folder, "tokenize --train bpe --vocabulary 262 words.txt --out tokenizer.json").exit_code == 0);
    auto config = base(model_family::llama);
    config.model.vocabulary = 262;
    auto const run = write_checkpoint(folder, config);
    export_huggingface(checkpoint{run / "step-1"}, folder.path / "exported");
    std::filesystem::copy(folder.path / "tokenizer.json", folder.path / "exported/tokenizer.json");
    text_coder const coder{(folder.path / "tokenizer.json").string()};
    REQUIRE(coder.end());
    std::string const how = " --prompt 'one two' --tokens 30 --temperature 3 --json --seed ";
    bool some_ended = false;
    for (int seed = 0; seed < 12; ++seed) {
        auto const number = std::to_string(seed);
        auto const made = run_rheo(folder, "generate run --tokenizer tokenizer.json" + how + number);
        REQUIRE(made.exit_code == 0);
        auto const text = nlohmann::json::parse(made.out).at("texts").at(0);
        auto const again = nlohmann::json::parse(run_rheo(folder, "generate exported" + how + number).out).at("texts").at(0);
        CHECK(again == text);  // the folder's own tokenizer
        auto const all = nlohmann::json::parse(run_rheo(folder, "generate exported --ignore-end" + how + number).out).at("texts").at(0);
        auto const tokens = text.at("tokens").get<std::vector<token_id>>();
        auto const further = all.at("tokens").get<std::vector<token_id>>();
        CHECK(further.size() == 30);
        CHECK(all.at("ended") == false);
        auto const end = std::find(further.begin(), further.end(), *coder.end());
        CHECK(std::equal(tokens.begin(), tokens.end(), further.begin(), end));
        CHECK(text.at("ended") == (end != further.end()));
        some_ended = some_ended || end != further.end();
    }
    CHECK(some_ended);
}
