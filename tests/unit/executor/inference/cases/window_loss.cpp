// SPDX-License-Identifier: Apache-2.0
// Losses of documents against sums over logits, in windows that do not overlap and in ones that do.
#include "executor/inference/window_loss.hpp"

#include <algorithm>
#include <cmath>

#include "executor/inference/evaluate.hpp"
#include "rheo/units/exit_error.hpp"
#include "small_models.hpp"

using namespace rheo;
using namespace small_models;

namespace {

/// -log p(tokens[at + 1]) behind tokens[begin .. at].
double token_loss(loaded_model& model, std::vector<std::int32_t> const& tokens, std::int64_t begin, std::int64_t at)
{
    auto const logits = training_logits(model, {tokens.begin() + begin, tokens.begin() + at + 1}).back();
    double sum = 0;
    for (auto const logit : logits) {
        sum += std::exp(static_cast<double>(logit));
    }
    return std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(tokens[static_cast<std::size_t>(at + 1)])]);
}

/// The mean over a document, where window number k begins at k * stride and a token counts in the first window that predicts it.
double expected_loss(loaded_model& model, std::vector<std::int32_t> const& tokens, std::int64_t window, std::int64_t stride)
{
    double sum = 0;
    auto const last = std::ssize(tokens) - 1;
    for (std::int64_t at = 0; at < last; ++at) {
        std::int64_t k = 0;
        while (k * stride + window <= at) {
            ++k;
        }
        sum += token_loss(model, tokens, k * stride, at);
    }
    return sum / static_cast<double>(last);
}

}  // namespace

TEST_CASE("window_loss: each token is predicted once")
{
    for (auto const family : {model_family::gpt2, model_family::llama}) {
        temporary_folder const folder;
        loaded_model model{write_checkpoint(folder, base(family)), model_grid::of_run};
        for (std::int64_t const count : {2, 16, 17, 18, 45}) {
            auto const tokens = random_tokens(count, 21);
            for (auto const& [window, stride] : {std::pair<std::int64_t, std::int64_t>{16, 16}, {16, 5}, {16, 1}, {10, 10}, {40, 40}, {1, 1}}) {
                CAPTURE(count, window, stride);
                window_loss sum{model, window};
                sum.add(tokens, stride);
                auto const loss = sum.loss();
                CHECK(loss.targets == count - 1);
                CHECK(std::fabs(mean_loss(loss) - expected_loss(model, tokens, window, stride)) < 2e-5);
            }
        }
    }
}

TEST_CASE("window_loss: documents add up, in any slices")
{
    temporary_folder const folder;
    auto config = base(model_family::llama);
    config.train.microbatch.slices = 4;
    loaded_model model{write_checkpoint(folder, config), model_grid::of_run};
    auto const a = random_tokens(33, 22);
    auto const b = random_tokens(5, 23);
    auto const one = random_tokens(1, 24);
    window_loss sum{model, 16};
    CHECK(sum.shape().slices == 4);
    sum.add(a, 16);
    sum.add(one, 16);  // nothing lies before its only token
    sum.add({}, 16);
    sum.add(b, 16);
    auto const loss = sum.loss();
    CHECK(loss.targets == 32 + 4);
    auto const expected = (expected_loss(model, a, 16, 16) * 32 + expected_loss(model, b, 16, 16) * 4) / 36;
    CHECK(std::fabs(mean_loss(loss) - expected) < 2e-5);
}

TEST_CASE("evaluate: bits per byte are of the text's bytes")
{
    temporary_folder const folder;
    auto config = base(model_family::gpt2);
    config.model.vocabulary = 256;
    loaded_model model{write_checkpoint(folder, config), model_grid::of_run};
    text_coder bytes{""};
    auto const first = folder.write("texts/a", "The quick brown fox jumps over the lazy dog.");
    folder.write("texts/b", "\xc3\xa4");
    auto const of = evaluate_files(model, bytes, {(folder.path / "texts").string()}, {});
    CHECK(of.documents == 2);
    CHECK(of.window == 16);
    CHECK(of.loss.targets == 43 + 1);
    CHECK(of.bytes == 44);  // the first byte of each file is not predicted
    CHECK(of.perplexity() == Approx(std::exp(of.nats())));
    CHECK(*of.bits_per_byte() == Approx(of.nats() / std::log(2.0)));
    CHECK_THROWS_WITH(evaluate_files(model, bytes, {first}, {.window = 41}), "--window 41: it goes beyond the model's context of 40 tokens");
    CHECK_THROWS_WITH(evaluate_files(model, bytes, {first}, {.stride = 17}),
                      "--stride 17: windows of 16 tokens would leave tokens out between them; it is at most the window");
    CHECK_THROWS_AS(evaluate_files(model, bytes, {folder.write("short", "x")}, {}), exit_error);
}
