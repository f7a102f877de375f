// SPDX-License-Identifier: Apache-2.0
// `rheo tokenize`: texts to token files, and tokenizers trained on texts.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/cli/commands.hpp"
#include "executor/config/strict_json.hpp"
#include "executor/text/corpus/bpe_training.hpp"
#include "executor/text/corpus/text_model.hpp"
#include "executor/text/corpus/tokenize.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

int threads_of(tokenize_command_options const& options)
{
    return options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// @throws exit_error when the tokenizer has no such token
std::optional<token_id> document_token(tokenize_command_options const& options, text_model const& model)
{
    if (options.document_token == "none") {
        return std::nullopt;
    }
    if (options.document_token.empty()) {
        return end_of_text(model);
    }
    auto const id = id_of(model, options.document_token);
    if (!id) {
        throw exit_error{exit_code::usage,
                         fmt::format("--document-token: the tokenizer has no token '{}'; name one that it has, or none", options.document_token)};
    }
    return id;
}

void print(tokenize_counts const& counts, std::vector<std::string> const& files, std::int64_t vocabulary, token_file_form form, std::string const& ends,
           double seconds)
{
    auto const plural = [](std::int64_t count) { return count == 1 ? "" : "s"; };
    fmt::print("{} token{} of {} bits from {} document{} in {} file{}, {:.1f} MB in {:.1f} s\n", counts.tokens, plural(counts.tokens), 8 * form.token_bytes,
               counts.documents, plural(counts.documents), counts.files, plural(counts.files), static_cast<double>(counts.bytes) / 1e6, seconds);
    fmt::print("documents end with {}; model.vocabulary = {}\n", ends, vocabulary);
    if (counts.replaced > 0) {
        fmt::print("{} sequence{} of bytes that were not UTF-8 became U+FFFD\n", counts.replaced, plural(counts.replaced));
    }
    for (auto const& file : files) {
        fmt::print("{}\n", file);
    }
}

void print_json(nlohmann::json const& answer) { fmt::print("{}\n", format_json(answer, 1)); }

int train_tokenizer(tokenize_command_options const& options)
{
    if (options.vocabulary == 0) {
        throw exit_error{exit_code::usage, "--train needs --vocabulary, the number of tokens"};
    }
    auto const made = train_tokenizer_file({.paths = options.paths,
                                            .out = options.out,
                                            .kind = options.train,
                                            .vocabulary = options.vocabulary,
                                            .field = options.field,
                                            .threads = threads_of(options)});
    if (options.json) {
        print_json({{"file", options.out}, {"vocabulary", made.vocabulary}, {"bytes", made.bytes}});
    } else {
        fmt::print("{}: {} tokens, trained on {:.1f} MB\n", options.out, made.vocabulary, static_cast<double>(made.bytes) / 1e6);
    }
    return 0;
}

}  // namespace

int tokenize(tokenize_command_options const& options)
{
    if (!options.train.empty()) {
        return train_tokenizer(options);
    }
    if (options.paths.size() < 2) {
        throw exit_error{exit_code::usage, "tokenize needs a tokenizer and files: rheo tokenize tokenizer.json texts --out tokens.bin"};
    }
    if (!is_token_file(options.out)) {
        throw exit_error{exit_code::usage, fmt::format("--out {}: the name of a token file ends in .bin; rheo train takes others for texts", options.out)};
    }
    auto const started = std::chrono::steady_clock::now();
    auto const model = open_text_model(options.paths.front());
    auto const vocabulary = vocabulary_of(model);
    auto const form = vocabulary <= 65536 ? tokens_of_16_bits : tokens_of_32_bits;
    auto const end = document_token(options, model);
    token_file_writer out{options.out, form, options.shard_tokens};
    auto const counts = tokenize_files(model, {options.paths.begin() + 1, options.paths.end()},
                                       {.field = options.field,
                                        .document_token = end,
                                        .special_tokens = !options.no_special_tokens,
                                        .refuse_invalid = options.invalid == "refuse",
                                        .threads = threads_of(options)},
                                       out);
    if (counts.tokens == 0) {
        throw exit_error{exit_code::bad_data, "text: the files hold no text"};
    }
    auto const files = out.finish();
    auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    auto const ends = end ? fmt::format("'{}' ({})", token_of(model, *end), *end) : std::string{"no token"};
    if (options.json) {
        print_json({{"files", files},
                    {"tokens", counts.tokens},
                    {"token_bits", 8 * form.token_bytes},
                    {"documents", counts.documents},
                    {"bytes", counts.bytes},
                    {"replaced", counts.replaced},
                    {"vocabulary", vocabulary},
                    {"document_token", end ? nlohmann::json(*end) : nlohmann::json()},
                    {"seconds", seconds}});
    } else {
        print(counts, files, vocabulary, form, ends, seconds);
    }
    return 0;
}

}  // namespace rheo::cli
