// SPDX-License-Identifier: Apache-2.0
// Draws against probabilities and sets that were worked out by hand, and against the text of a training's end.
#include "executor/inference/sampler.hpp"

#include <cmath>
#include <vector>

#include "support/catch.hpp"

using namespace rheo;

namespace {

/// Logits of these probabilities.
std::vector<float> logits_of(std::vector<double> const& probabilities)
{
    std::vector<float> logits;
    for (auto const p : probabilities) {
        logits.push_back(static_cast<float>(std::log(p)) + 3);
    }
    return logits;
}

/// Pearson's statistic of so many draws against expected probabilities; a token without probability is never drawn.
double chi_square(std::vector<float> const& logits, sampling const& how, std::vector<double> const& expected, int draws)
{
    std::vector<int> counts(expected.size());
    for (int i = 0; i < draws; ++i) {
        ++counts[static_cast<std::size_t>(sampled_token(logits, how, sampling_word(5, i % 7, i / 7)))];
    }
    double sum = 0;
    for (std::size_t t = 0; t < expected.size(); ++t) {
        if (expected[t] == 0) {
            CHECK(counts[t] == 0);
            continue;
        }
        auto const wanted = expected[t] * draws;
        sum += (counts[t] - wanted) * (counts[t] - wanted) / wanted;
    }
    return sum;
}

}  // namespace

TEST_CASE("sampler: draws follow the distribution")
{
    // Bounds are the 99.9 % quantiles of chi square for the degrees of freedom; the seed is fixed.
    std::vector<double> const p{0.4, 0.1, 0.25, 0.05, 0.2};
    auto const logits = logits_of(p);
    CHECK(chi_square(logits, {}, p, 20'000) < 18.47);
    std::vector<double> squared;  // temperature 1/2 squares the probabilities: 0.16 0.01 0.0625 0.0025 0.04, together 0.275
    for (auto const one : p) {
        squared.push_back(one * one / 0.275);
    }
    CHECK(chi_square(logits, {.temperature = 0.5}, squared, 20'000) < 18.47);
    CHECK(chi_square(logits, {.top_k = 3}, {0.4 / 0.85, 0, 0.25 / 0.85, 0, 0.2 / 0.85}, 20'000) < 13.82);
    CHECK(chi_square(logits, {.top_p = 0.6}, {0.4 / 0.65, 0, 0.25 / 0.65, 0, 0}, 20'000) < 10.83);
    CHECK(chi_square(logits, {}, {0.2, 0.2, 0.2, 0.2, 0.2}, 20'000) > 1000);  // the statistic tells distributions apart
}

TEST_CASE("sampler: candidates are those worked out by hand")
{
    auto const logits = logits_of({0.4, 0.1, 0.25, 0.05, 0.2});
    using tokens = std::vector<token_id>;
    CHECK(candidates(logits, {}) == tokens{0, 1, 2, 3, 4});
    CHECK(candidates(logits, {.top_k = 1}) == tokens{0});
    CHECK(candidates(logits, {.top_k = 2}) == tokens{0, 2});
    CHECK(candidates(logits, {.top_k = 9}) == tokens{0, 1, 2, 3, 4});
    CHECK(candidates(logits, {.top_p = 0.39}) == tokens{0});
    CHECK(candidates(logits, {.top_p = 0.41}) == tokens{0, 2});
    CHECK(candidates(logits, {.top_p = 0.8}) == tokens{0, 2, 4});
    CHECK(candidates(logits, {.top_p = 1e-9}) == tokens{0});
    // top_p is of what top_k leaves: 0.4 of 0.65 is 0.615
    CHECK(candidates(logits, {.top_k = 2, .top_p = 0.6}) == tokens{0});
    CHECK(candidates(logits, {.top_k = 2, .top_p = 0.7}) == tokens{0, 2});
    // a temperature comes first: at 1/2 the first has 0.58
    CHECK(candidates(logits, {.temperature = 0.5, .top_p = 0.55}) == tokens{0});
    CHECK(candidates(std::vector<float>{1, 2, 2, 2, 0}, {.top_k = 2}) == tokens{1, 2});  // of equal ones the lowest
}

TEST_CASE("sampler: temperature 0 takes the most likely token")
{
    CHECK(sampled_token(std::vector<float>{1, 7, 7, -2}, {.temperature = 0}, ~0U) == 1);
    CHECK(most_likely(std::vector<float>{-5}) == 0);
}

TEST_CASE("sampler: a draw is a function of seed, sequence, position")
{
    CHECK(sampling_word(1, 2, 3) == sampling_word(1, 2, 3));
    CHECK(sampling_word(1, 2, 3) != sampling_word(2, 2, 3));
    CHECK(sampling_word(1, 2, 3) != sampling_word(1, 3, 3));
    CHECK(sampling_word(1, 2, 3) != sampling_word(1, 2, 4));
}

TEST_CASE("sampler: samples of trainings keep their draws")
{
    // What the training's own sampler drew at temperature 0.7 with seed 9, before this one took its place.
    std::vector<token_id> const golden{28, 34, 1, 15, 16, 14, 3, 6, 14, 27, 14, 1, 14, 17, 30, 14, 30, 3, 7, 2, 14, 29, 15, 3};
    std::vector<float> logits;
    for (int i = 0; i < 40; ++i) {
        logits.push_back(static_cast<float>((i * 37) % 40) / 10.0F);
    }
    std::vector<token_id> drawn;
    for (int n = 0; n < std::ssize(golden); ++n) {
        drawn.push_back(sampled_token(logits, {.temperature = 0.7}, sampling_word(9, 0, n)));
    }
    CHECK(drawn == golden);
}
