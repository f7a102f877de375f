// SPDX-License-Identifier: Apache-2.0
// `rheo evaluate` and `rheo generate` as users start them.
#include <nlohmann/json.hpp>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/huggingface/export.hpp"
#include "executor/inference/evaluate.hpp"
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
