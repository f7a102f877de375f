// SPDX-License-Identifier: Apache-2.0
// The commands about texts: tokens of them, and what a model makes of them.
#include "executor/cli/command_line.hpp"

#include <cstdint>

namespace rheo::cli {

namespace {

constexpr char const* model_help = "Run folder (its newest checkpoint), checkpoint, or a folder that transformers saved.";
constexpr char const* tokenizer_help =
    "Tokenizer of the model: tokenizer.json, a SentencePiece .model, or a folder with one. Default: bytes; of a folder that transformers saved, its own.";
constexpr char const* threads_help = "Threads. Overrides run.threads. The result is the same for any number.";

}  // namespace

void command_line::add_tokenize()
{
    auto& command = *app.add_subcommand("tokenize", "Write texts as token files, or train a tokenizer on texts.");
    command.callback([this] { chosen = [this] { return tokenize(tokenize_); }; });
    auto& options = tokenize_;
    command
        .add_option("paths", options.paths,
                    "A tokenizer (tokenizer.json, a SentencePiece .model, or a folder with one), then texts: files and folders, JSON lines (.jsonl, .ndjson, "
                    ".json), also packed by gzip or zstd. With --train texts alone.")
        ->required()
        ->expected(1, 1 << 20)
        ->type_name("PATH");
    command.add_option("--out", options.out, "File to write: a token file (.bin), with --train a tokenizer.")->required()->type_name("FILE");
    command.add_option("--field", options.field, "Field of JSON lines that holds the text.")->type_name("NAME")->capture_default_str();
    command
        .add_option("--document-token", options.document_token,
                    "Token behind each document, or none. Default: the tokenizer's end-of-text token, if it has one.")
        ->type_name("TOKEN");
    command.add_flag("--no-special-tokens", options.no_special_tokens, "Leave out the tokens that the tokenizer puts around each text.");
    command.add_option("--invalid", options.invalid, "What to do with bytes that are not UTF-8: replace them by U+FFFD, or refuse the file.")
        ->check(CLI::IsMember({"replace", "refuse"}))
        ->capture_default_str();
    command
        .add_option("--shard-tokens", options.shard_tokens,
                    "Most tokens of one file. More go into further files, numbered NAME.00000.bin and on. Default: 2147483647, the most that a header can say.")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{INT32_MAX}));
    command.add_option("--threads", options.threads, "Threads that encode. Default: one for each processor. The tokens are the same for any number.")
        ->check(CLI::Range(1, 1024));
    command
        .add_option("--train", options.train,
                    "Train a tokenizer: bpe as tokenizer.json in GPT-2's form; unigram or sentencepiece-bpe as a SentencePiece .model.")
        ->check(CLI::IsMember({"bpe", "unigram", "sentencepiece-bpe"}));
    command.add_option("--vocabulary", options.vocabulary, "With --train: number of tokens.")->check(CLI::Range(257, 1 << 24));
    command.add_flag("--json", options.json, "Print the result as JSON.");
}

void command_line::add_evaluate()
{
    auto& command = *app.add_subcommand("evaluate", "Measure how well a model predicts texts, or answers multiple-choice questions.");
    command.callback([this] { chosen = [this] { return evaluate_model(evaluate_); }; });
    auto& options = evaluate_;
    command.add_option("run", options.run, model_help)->required()->type_name("RUN");
    command
        .add_option(
            "files", options.files,
            "Texts, token files (.bin), or JSON lines: files and folders. Each file is a document, with a tokenizer each JSON line. None: the validation "
            "split of the run, as the training evaluates it.")
        ->expected(0, 1 << 20)
        ->type_name("FILE");
    command.add_option("--tokenizer", options.tokenizer, tokenizer_help)->type_name("FILE");
    command.add_option("--field", options.field, "Field of JSON lines that holds the text.")->type_name("NAME")->capture_default_str();
    auto* const window =
        command.add_option("--window", options.window, "Tokens of a window. Default: train.microbatch.tokens; of imported weights the context.")
            ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
    auto* const stride = command.add_option("--stride", options.stride, "Tokens from window to window. Default: the window, so that none overlap.")
                             ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
    command
        .add_flag("--choices", options.choices,
                  "The files are questions, one per line: {\"context\": text, \"choices\": [texts], \"answer\": number}. Prints acc and acc_norm.")
        ->excludes(window)
        ->excludes(stride);
    command.add_option("--threads", options.threads, threads_help)->check(CLI::Range(1, 1024));
    command.add_flag("--json", options.json, "Print the result as JSON.");
}

void command_line::add_generate()
{
    auto& command = *app.add_subcommand("generate", "Let a model continue texts. Under mpirun its ranks share the layers.");
    command.callback([this] { chosen = [this] { return generate_text(generate_); }; });
    auto& options = generate_;
    command.add_option("run", options.run, model_help)->required()->type_name("RUN");
    auto* const prompt = command.add_option("--prompt", options.prompt, "Text to continue.")->type_name("TEXT");
    command.add_option("--prompts", options.prompts, "File with a text per line, or JSON lines with texts, or with lists of numbers under tokens.")
        ->excludes(prompt)
        ->type_name("FILE");
    command.add_option("--field", options.field, "Field of JSON lines that holds the text.")->type_name("NAME")->capture_default_str();
    command.add_option("--tokens", options.tokens, "Most tokens to generate behind each prompt.")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
        ->capture_default_str();
    command.add_option("--temperature", options.temperature, "Divides the logits. 0 takes the most likely token each time.")
        ->check(CLI::Range(0.0, 1e6))
        ->capture_default_str();
    command.add_option("--top-k", options.top_k, "Draw from this many of the most likely tokens. 0: from all.")
        ->check(CLI::Range(0, 1 << 30))
        ->capture_default_str();
    command.add_option("--top-p", options.top_p, "Draw from the fewest most likely tokens that have this probability together.")
        ->check(CLI::Range(1e-9, 1.0))
        ->capture_default_str();
    command.add_option("--seed", options.seed, "Seed of the draws.")->capture_default_str();
    command.add_option("--tokenizer", options.tokenizer, tokenizer_help)->type_name("FILE");
    command.add_flag("--ignore-end", options.ignore_end, "Generate all tokens, also behind the one that ends a document.");
    command.add_option("--batch", options.batch, "Most prompts to compute at once. The result is the same for any number.")
        ->check(CLI::Range(1, 256))
        ->capture_default_str();
    command.add_flag("--no-cache", options.no_cache, "Compute the whole text for each token, with the same result: to compare.");
    command.add_option("--threads", options.threads, threads_help)->check(CLI::Range(1, 1024));
    command.add_flag("--json", options.json, "Print the result as JSON.");
}

}  // namespace rheo::cli
