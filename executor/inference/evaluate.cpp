// SPDX-License-Identifier: Apache-2.0
#include "executor/inference/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include <fmt/format.h>

#include "executor/data/data.hpp"
#include "executor/data/file_list.hpp"
#include "executor/data/token_file_form.hpp"
#include "executor/data/token_files.hpp"
#include "executor/inference/window_loss.hpp"
#include "executor/text/corpus/corpus_reader.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

/// Documents as tokens, one after the other, into the loss.
class document_sink {
public:
    document_sink(loaded_model& model, text_coder& coder, window_loss& into, text_evaluation& of) : model_{&model}, coder_{&coder}, into_{&into}, of_{&of} {}

    /// @param bytes of its text, if that is known
    void add(std::span<token_id const> tokens, std::optional<std::int64_t> bytes, std::string const& where)
    {
        expect_in_vocabulary(tokens, *model_, where);
        into_->add(tokens, of_->stride);
        ++of_->documents;
        if (!bytes || tokens.empty()) {
            of_->bytes = bytes ? of_->bytes : std::nullopt;
            return;
        }
        bool const first_is_text = coder_->tokens_before() == 0;
        auto const unpredicted = first_is_text ? std::ssize(coder_->decode(tokens.first(1))) : std::ptrdiff_t{0};
        of_->bytes = of_->bytes.value_or(0) + std::max<std::int64_t>(0, *bytes - unpredicted);
    }

    void add_text(std::string_view text, std::string const& where) { add(coder_->encode_whole(text), std::ssize(text), where); }

private:
    loaded_model* model_;
    text_coder* coder_;
    window_loss* into_;
    text_evaluation* of_;
};

/// Token files, or the bytes of texts.
void add_files(std::vector<std::string> const& paths, text_coder const& coder, document_sink& sink)
{
    token_files const files{paths};
    for (auto const& piece : files.pieces()) {
        std::vector<token_id> tokens(static_cast<std::size_t>(piece.count));
        for (std::int64_t i = 0; i < piece.count; ++i) {
            tokens[static_cast<std::size_t>(i)] = files.token(piece, i);
        }
        std::optional<std::int64_t> bytes;
        if (files.is_text()) {
            bytes = piece.count;
        } else if (!coder.is_bytes()) {
            bytes = std::ssize(coder.decode(tokens));
        }
        sink.add(tokens, bytes, fmt::format("'{}'", piece.path));
    }
}

void add_documents(std::vector<std::string> const& paths, std::string const& field, document_sink& sink)
{
    corpus_reader reader{paths, {}};
    while (auto const batch = reader.next()) {
        for (auto const& part : batch->parts) {
            sink.add_text(part.text, fmt::format("'{}'", *part.path));
        }
        for_each_text(batch->lines, field, [&](std::string const& text, std::string const& where) { sink.add_text(text, where); });
    }
}

bool are_token_files(std::vector<std::string> const& paths)
{
    auto const files = list_files(paths);
    return std::any_of(files.begin(), files.end(), [](std::string const& path) { return is_token_file(path); });
}

}  // namespace

double text_evaluation::perplexity() const { return std::exp(nats()); }

std::optional<double> text_evaluation::bits_per_byte() const
{
    if (!bytes || *bytes == 0) {
        return std::nullopt;
    }
    return nats() * static_cast<double>(loss.targets) / std::numbers::ln2 / static_cast<double>(*bytes);
}

text_evaluation evaluate_files(loaded_model& model, text_coder& coder, std::vector<std::string> const& paths, evaluation_options const& options)
{
    text_evaluation of;
    of.window = options.window > 0 ? options.window : model.training_tokens();
    of.stride = options.stride > 0 ? options.stride : of.window;
    if (of.window > model.context()) {
        throw exit_error{exit_code::usage, fmt::format("--window {}: it goes beyond the model's context of {} tokens", of.window, model.context())};
    }
    if (of.stride > of.window) {
        throw exit_error{exit_code::usage,
                         fmt::format("--stride {}: windows of {} tokens would leave tokens out between them; it is at most the window", of.stride, of.window)};
    }
    of.bytes = 0;
    window_loss loss{model, of.window};
    document_sink sink{model, coder, loss, of};
    bool const has_tokens = are_token_files(paths);
    if (!has_tokens) {
        expect_same_tokens(coder, model);
    }
    if (has_tokens || coder.is_bytes()) {
        of.bytes = has_tokens && coder.is_bytes() ? std::nullopt : of.bytes;
        add_files(paths, coder, sink);
    } else {
        add_documents(paths, options.field, sink);
    }
    of.loss = loss.loss();
    if (of.loss.targets == 0) {
        throw exit_error{exit_code::bad_data, "data: the files hold no token with another one before it; nothing can be predicted"};
    }
    return of;
}

text_evaluation evaluate_validation(loaded_model& model)
{
    auto const& train = model.config().train;
    auto const& shape = train.microbatch;
    dataset const data{model.config().data, static_cast<int>(model.vocabulary()), shape};
    window_loss loss{model, shape.tokens};
    std::vector<std::vector<std::int32_t>> tokens(static_cast<std::size_t>(shape.slices), std::vector<std::int32_t>(static_cast<std::size_t>(rows(shape))));
    auto targets = tokens;
    for (int m = 0; m < train.eval_microbatches; ++m) {
        for (std::size_t s = 0; s < tokens.size(); ++s) {
            data.validation_microbatch(microbatch_id{m}, tokens[s], targets[s], static_cast<int>(s));
        }
        loss.add_microbatch(tokens, targets);
    }
    text_evaluation of{
        .loss = loss.loss(), .documents = std::int64_t{train.eval_microbatches} * shape.sequences, .bytes = {}, .window = shape.tokens, .stride = shape.tokens};
    if (data.is_text()) {
        of.bytes = of.loss.targets;
    }
    return of;
}

}  // namespace rheo::inline v0
