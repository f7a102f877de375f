// SPDX-License-Identifier: Apache-2.0
// `rheo generate`: what a model writes behind prompts.

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "executor/cli/commands.hpp"
#include "executor/cli/generation_part.hpp"
#include "executor/config/strict_json.hpp"
#include "executor/inference/generate.hpp"
#include "executor/inference/prompts.hpp"
#include "executor/inference/text_coder.hpp"
#include "executor/inference/text_stream.hpp"
#include "executor/os/terminal.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

constexpr int rows_of_pass = 256;
constexpr int logits_at_once = 16;

std::vector<prompt> prompts_of(generate_options const& options)
{
    if (options.prompts.empty() == options.prompt.empty()) {
        throw exit_error{exit_code::usage, "generate needs --prompt TEXT, or --prompts FILE with a prompt per line"};
    }
    return options.prompts.empty() ? std::vector<prompt>{options.prompt} : read_prompts(options.prompts, options.field);
}

std::vector<std::vector<token_id>> tokens_of(std::vector<prompt> const& prompts, text_coder& coder, loaded_model const& model)
{
    std::vector<std::vector<token_id>> all;
    for (auto const& one : prompts) {
        auto const where = fmt::format("prompt {}", all.size() + 1);
        if (auto const* const text = std::get_if<std::string>(&one)) {
            expect_same_tokens(coder, model);
            all.push_back(coder.encode(*text));
        } else {
            all.push_back(std::get<std::vector<token_id>>(one));
        }
        if (all.back().empty()) {
            throw exit_error{exit_code::bad_data, where + " has no token; a text begins behind one token at least"};
        }
        expect_in_vocabulary(all.back(), model, where);
    }
    return all;
}

/// Whether tokens are a text to people: they are bytes, or their tokenizer is known.
bool has_texts(text_coder const& coder, loaded_model const& model) { return !coder.is_bytes() || model.vocabulary() == coder.vocabulary(); }

/// The text behind a prompt: of some tokenizers a token is another text at the beginning than behind others.
std::string text_behind(std::vector<token_id> tokens, std::vector<token_id> const& more, text_coder const& coder)
{
    auto const before = coder.decode(tokens);
    tokens.insert(tokens.end(), more.begin(), more.end());
    auto const whole = coder.decode(tokens);
    return whole.starts_with(before) ? whole.substr(before.size()) : coder.decode(more);
}

struct outcome {
    std::vector<std::vector<token_id>> prompts;
    std::vector<generated_tokens> made;
    double seconds;

    std::size_t count() const
    {
        std::size_t sum = 0;
        for (auto const& one : made) {
            sum += one.tokens.size();
        }
        return sum;
    }
};

void print_json(outcome const& of, text_coder const& coder, loaded_model const& model, generate_options const& options)
{
    auto texts = nlohmann::json::array();
    std::size_t read = 0;
    for (std::size_t p = 0; p < of.made.size(); ++p) {
        auto& entry = texts.emplace_back(nlohmann::json{{"prompt_tokens", of.prompts[p]}, {"tokens", of.made[p].tokens}, {"ended", of.made[p].ended}});
        if (has_texts(coder, model)) {
            entry["prompt"] = coder.decode(of.prompts[p]);
            entry["text"] = text_behind(of.prompts[p], of.made[p].tokens, coder);
        }
        read += of.prompts[p].size();
    }
    fmt::print("{}\n", format_json({{"model", model.name()},
                                    {"seed", options.seed},
                                    {"texts", texts},
                                    {"prompt_tokens", read},
                                    {"generated_tokens", of.count()},
                                    {"seconds", of.seconds}},
                                   1));
}

std::string whole_text(std::vector<token_id> const& prompt, std::vector<token_id> const& tokens, text_coder const& coder)
{
    return coder.decode(prompt) + text_behind(prompt, tokens, coder);
}

/// One text on a terminal, where people read it while it is made.
class shown_text {
public:
    shown_text(std::vector<token_id> const& prompt, text_coder const& coder) : prompt_{prompt}, coder_{coder} {}

    void add(token_id token)
    {
        tokens_.push_back(token);
        show(stream_.add(whole_text(prompt_, tokens_, coder_)));
    }
    void finish() { show(stream_.finish(whole_text(prompt_, tokens_, coder_)) + "\n"); }

private:
    static void show(std::string const& text)
    {
        fmt::print("{}", text);
        std::fflush(stdout);
    }

    std::vector<token_id> const& prompt_;
    text_coder const& coder_;
    std::vector<token_id> tokens_{};
    text_stream stream_{};
};

void print_rate(outcome const& of)
{
    fmt::print(stderr, "rheo: {} token{} in {:.2f} s, {:.1f} tokens/s\n", of.count(), of.count() == 1 ? "" : "s", of.seconds,
               static_cast<double>(of.count()) / of.seconds);
}

void print_texts(outcome const& of, text_coder const& coder, loaded_model const& model)
{
    for (std::size_t p = 0; p < of.made.size(); ++p) {
        if (of.made.size() > 1) {
            fmt::print("--- prompt {}\n", p + 1);
        }
        auto const& tokens = of.made[p].tokens;
        fmt::print("{}\n", has_texts(coder, model) ? whole_text(of.prompts[p], tokens, coder) : fmt::format("{}", fmt::join(tokens, " ")));
    }
}

}  // namespace

int generate_text(generate_options const& options)
{
    auto const prompts = prompts_of(options);
    auto const part = generation_part();
    bool const is_reporter = part.number == 0;
    loaded_model model{options.run, model_grid::one, options.threads, part};
    for (auto const& note : model.notes()) {
        if (is_reporter) {
            fmt::print(stderr, "rheo: {}\n", note);
        }
    }
    text_coder coder{tokenizer_for(options.tokenizer, options.run)};
    outcome of{tokens_of(prompts, coder, model), {}, 0};
    incremental_model with{model, rows_of_pass, logits_at_once, part};
    std::optional<shown_text> shown;
    if (is_reporter && of.prompts.size() == 1 && !options.json && has_texts(coder, model) && shows_in_terminal()) {
        shown.emplace(of.prompts.front(), coder);
    }
    auto const started = std::chrono::steady_clock::now();
    of.made = generate(with, of.prompts,
                       {.tokens = options.tokens,
                        .how = {options.temperature, options.top_k, options.top_p},
                        .seed = options.seed,
                        .end = options.ignore_end ? std::nullopt : coder.end(),
                        .batch = static_cast<std::size_t>(options.batch),
                        .cached = !options.no_cache,
                        .each = [&](std::size_t, token_id token) {
                            if (shown) {
                                shown->add(token);
                            }
                        }});
    of.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    if (is_reporter && options.json) {
        print_json(of, coder, model, options);
    } else if (is_reporter) {
        shown ? shown->finish() : print_texts(of, coder, model);
        std::fflush(stdout);
        print_rate(of);
    }
    leave_generation(part);
    return 0;
}

}  // namespace rheo::cli
