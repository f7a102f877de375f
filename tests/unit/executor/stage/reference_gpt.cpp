// SPDX-License-Identifier: Apache-2.0
// The reference against what cannot be wrong: finite differences of its own loss, and values known by thought.
#include "reference_training.hpp"

#include <algorithm>

#include "kernels/adamw/adamw.hpp"
#include "support/catch.hpp"

using namespace reference;

namespace {

microbatch random_microbatch(rheo::gpt_shape shape, rheo::microbatch_shape m, unsigned seed)
{
    std::mt19937 draw{seed};
    microbatch result;
    for (int i = 0; i < rheo::rows(m); ++i) {
        result.tokens.push_back(static_cast<std::int32_t>(draw() % static_cast<unsigned>(shape.vocabulary)));
        result.targets.push_back(static_cast<std::int32_t>(draw() % static_cast<unsigned>(shape.vocabulary)));
    }
    result.targets[1] = -1;
    return result;
}

/// d loss / d parameter by central differences. h = 1e-4: the truncation is h^2 f''' / 6, the rounding 1e-15 |loss| / h with a
/// loss of 1e2: both about 1e-8 and below; the bound leaves a factor of 100.
void check_gradients(gpt model, std::vector<microbatch> const& step)
{
    auto const sums = model.sums(step);
    std::mt19937 draw{5};
    for (std::size_t t = 0; t < model.parameters.size(); ++t) {
        auto& p = model.parameters[t];
        for (int trial = 0; trial < 12 && !p.empty(); ++trial) {
            auto const i = draw() % p.size();
            double const kept = p[i];
            p[i] = kept + 1e-4;
            double const above = model.sums(step).loss;
            p[i] = kept - 1e-4;
            double const below = model.sums(step).loss;
            p[i] = kept;
            double const slope = (above - below) / 2e-4;
            INFO(model.info().tensors[t].name << " element " << i);
            CHECK(std::fabs(sums.gradients[t][i] - slope) <= 1e-6 * (1 + std::fabs(slope)));
        }
    }
}

}  // namespace

TEST_CASE("reference_gpt: gradients are slopes of the loss")
{
    rheo::microbatch_shape const m{.sequences = 2, .tokens = 5};
    for (bool const tied : {true, false}) {
        rheo::gpt_shape const shape{.vocabulary = 11, .context = 6, .width = 8, .heads = 2, .blocks = 2, .tied = tied};
        gpt model{shape, m, 3};
        std::mt19937 draw{9};
        std::normal_distribution<double> normal{0, 0.3};
        for (auto& tensor : model.parameters) {  // large enough that every path matters
            for (auto& p : tensor) {
                p += normal(draw);
            }
        }
        check_gradients(model, {random_microbatch(shape, m, 1), random_microbatch(shape, m, 2)});
    }
}

TEST_CASE("reference_gpt: zero table gives equal probabilities")
{
    rheo::microbatch_shape const m{.sequences = 1, .tokens = 4};
    rheo::gpt_shape const shape{.vocabulary = 7, .context = 4, .width = 4, .heads = 1, .blocks = 1};
    gpt model{shape, m, 3};
    std::fill(model.parameters[0].begin(), model.parameters[0].end(), 0.0);
    REQUIRE(model.info().tensors[0].name == "wte.weight");
    std::vector<microbatch> const step{random_microbatch(shape, m, 1)};
    auto const sums = model.sums(step);
    CHECK(sums.targets == 3);
    CHECK(sums.mean_loss() == Approx(std::log(7.0)).epsilon(1e-14));
}

TEST_CASE("reference_gpt: sums are additive; attention is causal")
{
    rheo::microbatch_shape const m{.sequences = 2, .tokens = 4};
    rheo::gpt_shape const shape{.vocabulary = 7, .context = 4, .width = 8, .heads = 2, .blocks = 2};
    gpt const model{shape, m, 3};
    std::vector<microbatch> const both{random_microbatch(shape, m, 1), random_microbatch(shape, m, 2)};
    auto const sum = model.sums(both);
    auto const first = model.sums(std::span{both}.first(1));
    auto const second = model.sums(std::span{both}.last(1));
    CHECK(sum.loss == Approx(first.loss + second.loss).epsilon(1e-14));
    CHECK(sum.gradients[0][9] == Approx(first.gradients[0][9] + second.gradients[0][9]).epsilon(1e-12));

    auto changed = both.front();  // only the first target of the first sequence counts; the tokens after it change
    std::fill(changed.targets.begin(), changed.targets.end(), -1);
    changed.targets[0] = 2;
    auto const before = model.sums(std::span{&changed, 1}).loss;
    changed.tokens[1] = (changed.tokens[1] + 1) % 7;
    changed.tokens[5] = (changed.tokens[5] + 1) % 7;
    CHECK(model.sums(std::span{&changed, 1}).loss == before);
    changed.tokens[0] = (changed.tokens[0] + 1) % 7;
    CHECK(model.sums(std::span{&changed, 1}).loss != before);
}

TEST_CASE("reference_gpt: linear warm-up, then cosine")
{
    optimizer_settings const o{.learning_rate = 1, .final_learning_rate = 0.2, .warmup_steps = 4, .steps = 14};
    CHECK(learning_rate(o, 0) == 0.25);
    CHECK(learning_rate(o, 3) == 1);
    CHECK(learning_rate(o, 4) == 1);
    CHECK(learning_rate(o, 9) == Approx(0.6));
    CHECK(learning_rate(o, 14) == Approx(0.2));
}

TEST_CASE("reference_gpt: update, decay and clipping as defined")
{
    rheo::microbatch_shape const m{.sequences = 1, .tokens = 4};
    rheo::gpt_shape const shape{.vocabulary = 7, .context = 4, .width = 4, .heads = 1, .blocks = 1};
    training t{gpt{shape, m, 3}};
    auto const begin = t.model.parameters;
    std::vector<microbatch> const step{random_microbatch(shape, m, 1)};
    auto sums = t.model.sums(step);
    optimizer_settings o{.learning_rate = 0.01, .warmup_steps = 1, .weight_decay = 0.5, .clip_norm = 0};
    o.epsilon = 0;
    t.update(sums, o);
    for (std::size_t k = 0; k < begin.size(); ++k) {  // the first step of Adam is the sign of the gradient
        bool const decays = t.model.info().tensors[k].decays;
        for (std::size_t i = 0; i < begin[k].size(); ++i) {
            auto const g = sums.gradients[k][i];
            if (g != 0) {
                double const sign = g > 0 ? 1 : -1;
                REQUIRE(t.model.parameters[k][i] == Approx(begin[k][i] - 0.01 * (sign + (decays ? 0.5 * begin[k][i] : 0))).margin(1e-12));
            }
        }
    }
    // a gradient scaled up beyond the limit moves the parameters as the one at the limit
    o.clip_norm = 1e-3;
    o.epsilon = 1e-2;
    training a{gpt{shape, m, 3}};
    training b{gpt{shape, m, 3}};
    a.update(sums, o);
    for (auto& tensor : sums.gradients) {
        for (auto& g : tensor) {
            g *= 1000;
        }
    }
    b.update(sums, o);
    CHECK(distance(a.model.parameters[0], b.model.parameters[0]) < 1e-15);
    CHECK(distance(a.model.parameters[0], begin[0]) > 1e-6);
}

TEST_CASE("reference_gpt: update matches the kernel in double")
{
    rheo::microbatch_shape const m{.sequences = 1, .tokens = 4};
    rheo::gpt_shape const shape{.vocabulary = 7, .context = 4, .width = 4, .heads = 1, .blocks = 1};
    training t{gpt{shape, m, 3}};
    auto parameters = t.model.parameters;
    std::vector<values> first, second;
    for (auto const& p : parameters) {
        first.emplace_back(p.size());
        second.emplace_back(p.size());
    }
    optimizer_settings const o{.warmup_steps = 2, .steps = 6, .clip_norm = 0.01};
    for (std::int64_t s = 0; s < 6; ++s) {
        std::vector<microbatch> const step{random_microbatch(shape, m, static_cast<unsigned>(s))};
        auto const sums = t.model.sums(step);
        double squares = 0;
        for (auto const& g : sums.gradients) {
            for (auto const x : g) {
                squares += x * x;
            }
        }
        double const divisor = static_cast<double>(sums.targets);
        for (std::size_t k = 0; k < parameters.size(); ++k) {
            rheo::definition::adamw<rheo::fp64>({.count = static_cast<std::int64_t>(parameters[k].size()),
                                                 .master = parameters[k].data(),
                                                 .first_moment = first[k].data(),
                                                 .second_moment = second[k].data(),
                                                 .gradient = sums.gradients[k].data(),
                                                 .weight_decay = t.model.info().tensors[k].decays ? o.weight_decay : 0,
                                                 .settings = {.gradient_multiplier = rheo::clip_factor(std::sqrt(squares) / divisor, o.clip_norm) / divisor,
                                                              .learning_rate = learning_rate(o, s),
                                                              .step = s + 1}});
        }
        t.update(sums, o);
    }
    for (std::size_t k = 0; k < parameters.size(); ++k) {
        CHECK(distance(parameters[k], t.model.parameters[k]) <= 1e-13);
    }
}

TEST_CASE("reference_gpt: training on the same data lowers the loss")
{
    rheo::microbatch_shape const m{.sequences = 2, .tokens = 8};
    rheo::gpt_shape const shape{.vocabulary = 13, .context = 8, .width = 16, .heads = 2, .blocks = 2};
    training t{gpt{shape, m, 3}};
    std::vector<microbatch> const step{random_microbatch(shape, m, 1), random_microbatch(shape, m, 2)};
    optimizer_settings const o{.learning_rate = 1e-2, .final_learning_rate = 1e-3, .warmup_steps = 3, .steps = 30};
    double const begin = t.train(step, o);
    double end = 0;
    for (int s = 1; s < 30; ++s) {
        end = t.train(step, o);
    }
    CHECK(begin == Approx(std::log(13.0)).margin(0.1));
    CHECK(end < 0.5 * begin);
}
