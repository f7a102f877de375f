// SPDX-License-Identifier: Apache-2.0
// `rheo evaluate`: how well a model predicts texts, or answers questions.

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/cli/commands.hpp"
#include "executor/config/strict_json.hpp"
#include "executor/config/text_file.hpp"
#include "executor/data/file_list.hpp"
#include "executor/inference/choices.hpp"
#include "executor/inference/evaluate.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point started) { return std::chrono::duration<double>(clock::now() - started).count(); }

void show_notes(loaded_model const& model)
{
    for (auto const& note : model.notes()) {
        fmt::print(stderr, "rheo: {}\n", note);
    }
}

int evaluate_texts(evaluate_options const& options)
{
    loaded_model model{options.run, model_grid::of_run, options.threads};
    show_notes(model);
    text_coder coder{tokenizer_for(options.tokenizer, options.run)};
    auto const started = clock::now();
    auto const of =
        options.files.empty() ? evaluate_validation(model) : evaluate_files(model, coder, options.files, {options.window, options.stride, options.field});
    auto const seconds = seconds_since(started);
    auto const bits = of.bits_per_byte();
    if (options.json) {
        auto const number = [](std::optional<double> value) { return value && std::isfinite(*value) ? nlohmann::json(*value) : nlohmann::json(); };
        fmt::print("{}\n", format_json({{"model", model.name()},
                                        {"documents", of.documents},
                                        {"tokens", of.loss.targets},
                                        {"bytes", of.bytes ? nlohmann::json(*of.bytes) : nlohmann::json()},
                                        {"window", of.window},
                                        {"stride", of.stride},
                                        {"loss", number(of.nats())},
                                        {"perplexity", number(of.perplexity())},
                                        {"bits_per_byte", number(bits)},
                                        {"seconds", seconds}},
                                       1));
    } else {
        fmt::print("{}: {} token{} predicted in windows of {}{}{}\n", model.name(), of.loss.targets, of.loss.targets == 1 ? "" : "s", of.window,
                   of.stride < of.window ? fmt::format(", one every {}", of.stride) : "", options.files.empty() ? ", of the run's validation split" : "");
        fmt::print("loss {:.6f} nats per token, perplexity {:.4f}{}\n", of.nats(), of.perplexity(),
                   bits ? fmt::format(", {:.4f} bits per byte", *bits) : ", bits per byte unknown without the tokenizer (--tokenizer)");
    }
    if (!std::isfinite(of.nats())) {
        throw exit_error{exit_code::not_finite, "the loss is not finite: some token's probability is zero, or a parameter is not finite"};
    }
    return 0;
}

/// Of so many answers.
double standard_error(double accuracy, double count) { return count > 1 ? std::sqrt(accuracy * (1 - accuracy) / (count - 1)) : 0; }

int evaluate_choices(evaluate_options const& options)
{
    std::vector<choice_question> questions;
    for (auto const& path : list_files(options.files)) {
        auto const some = read_choices(read_text_file(path), path);
        questions.insert(questions.end(), some.begin(), some.end());
    }
    if (questions.empty()) {
        throw exit_error{exit_code::bad_data, "data: the files hold no question; --choices reads one per line, as JSON"};
    }
    loaded_model model{options.run, model_grid::one, options.threads};
    show_notes(model);
    text_coder coder{tokenizer_for(options.tokenizer, options.run)};
    expect_same_tokens(coder, model);
    incremental_model with{model};
    auto const started = clock::now();
    std::int64_t right = 0;
    std::int64_t right_per_byte = 0;
    for (auto const& question : questions) {
        auto const scores = score(with, coder, question);
        right += scores.best() == question.answer ? 1 : 0;
        right_per_byte += scores.best_per_byte() == question.answer ? 1 : 0;
    }
    auto const count = static_cast<double>(questions.size());
    auto const acc = static_cast<double>(right) / count;
    auto const acc_norm = static_cast<double>(right_per_byte) / count;
    if (options.json) {
        fmt::print("{}\n", format_json({{"model", model.name()},
                                        {"questions", questions.size()},
                                        {"acc", acc},
                                        {"acc_stderr", standard_error(acc, count)},
                                        {"acc_norm", acc_norm},
                                        {"acc_norm_stderr", standard_error(acc_norm, count)},
                                        {"seconds", seconds_since(started)}},
                                       1));
    } else {
        fmt::print("{}: {} question{}\nacc {:.4f} +- {:.4f}, acc_norm {:.4f} +- {:.4f}\n", model.name(), questions.size(), questions.size() == 1 ? "" : "s",
                   acc, standard_error(acc, count), acc_norm, standard_error(acc_norm, count));
    }
    return 0;
}

}  // namespace

int evaluate_model(evaluate_options const& options)
{
    if (options.choices && options.files.empty()) {
        throw exit_error{exit_code::usage, "--choices needs files with questions, one per line, as JSON"};
    }
    return options.choices ? evaluate_choices(options) : evaluate_texts(options);
}

}  // namespace rheo::cli
