// SPDX-License-Identifier: Apache-2.0
// Generated tokens: those that a forward of the whole text would choose, whatever is computed beside them.
#include "executor/inference/generate.hpp"

#include <algorithm>

#include "rheo/units/exit_error.hpp"
#include "small_models.hpp"

using namespace rheo;
using namespace small_models;

namespace {

std::vector<std::vector<token_id>> const prompts{{7}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {60, 0, 60}, {7}, {12, 13}};

}  // namespace

TEST_CASE("generate: greedy tokens are a training forward's")
{
    for (auto const& [name, config] : families()) {
        CAPTURE(name);
        temporary_folder const folder;
        loaded_model model{write_checkpoint(folder, config), model_grid::one};
        incremental_model with{model};
        auto const made = generate(with, prompts, {.tokens = 12, .how = {.temperature = 0}});
        REQUIRE(made.size() == prompts.size());
        for (std::size_t p = 0; p < prompts.size(); ++p) {
            auto text = prompts[p];
            for (auto const token : made[p].tokens) {
                auto const logits = training_logits(model, text).back();
                auto sorted = logits;
                std::sort(sorted.rbegin(), sorted.rend());
                REQUIRE(sorted[0] - sorted[1] > 1e-4F);  // no tie that rounding could decide
                CHECK(token == most_likely(logits));
                text.push_back(token);
            }
            CHECK(made[p].tokens.size() == 12);
            CHECK_FALSE(made[p].ended);
        }
        CHECK(made[0] == made[3]);
    }
}

TEST_CASE("generate: each token is given as soon as it is chosen")
{
    temporary_folder const folder;
    loaded_model model{write_checkpoint(folder, base(model_family::gpt2)), model_grid::one};
    incremental_model with{model};
    std::vector<std::vector<token_id>> given(prompts.size());
    std::vector<std::size_t> turns;
    auto const made = generate(with, prompts, {.tokens = 4, .batch = 2, .each = [&](std::size_t prompt, token_id token) {
                                                   given[prompt].push_back(token);
                                                   turns.push_back(prompt);
                                               }});
    for (std::size_t p = 0; p < prompts.size(); ++p) {
        CHECK(given[p] == made[p].tokens);
    }
    CHECK(std::vector(turns.begin(), turns.begin() + 6) == std::vector<std::size_t>{0, 1, 0, 1, 0, 1});  // not one text after the other
}

TEST_CASE("generate: a seed gives one text for any batch and threads")
{
    temporary_folder const folder;
    auto const run = write_checkpoint(folder, base(model_family::llama));
    generation_options options{.tokens = 15, .how = {.temperature = 1.3, .top_k = 20, .top_p = 0.95}, .seed = 4};
    loaded_model model{run, model_grid::one};
    incremental_model with{model};
    auto const expected = generate(with, prompts, options);
    CHECK(expected[0] != expected[3]);  // each prompt has draws of its own
    for (std::size_t const batch : {1, 2, 3}) {
        options.batch = batch;
        CHECK(generate(with, prompts, options) == expected);
    }
    options.cached = false;
    CHECK(generate(with, prompts, options) == expected);
    loaded_model by_three{run, model_grid::one, 3};
    incremental_model narrow{by_three, 4, 2};
    CHECK(generate(narrow, prompts, options) == expected);
    CHECK(generate(with, std::span{prompts}.first(2), options) == std::vector(expected.begin(), expected.begin() + 2));
    options.seed = 5;
    CHECK(generate(with, prompts, options) != expected);
}

TEST_CASE("generate: the token that ends a text ends it")
{
    temporary_folder const folder;
    loaded_model model{write_checkpoint(folder, base(model_family::qwen2)), model_grid::one};
    incremental_model with{model};
    generation_options options{.tokens = 20, .how = {.temperature = 1}, .seed = 2, .batch = 2};
    auto const all = generate(with, prompts, options);
    auto const end = all[1].tokens[4];
    auto const first = std::find(all[1].tokens.begin(), all[1].tokens.end(), end);
    options.end = end;
    auto const some = generate(with, prompts, options);
    CHECK(some[1].ended);
    CHECK(some[1].tokens == std::vector(all[1].tokens.begin(), first));
    for (std::size_t p = 0; p < prompts.size(); ++p) {  // others are as they were, up to their own end
        CHECK(std::equal(some[p].tokens.begin(), some[p].tokens.end(), all[p].tokens.begin()));
        CHECK(some[p].ended == (std::find(all[p].tokens.begin(), all[p].tokens.end(), end) != all[p].tokens.end()));
    }
}

TEST_CASE("generate: what goes beyond the context is refused")
{
    temporary_folder const folder;
    loaded_model model{write_checkpoint(folder, base(model_family::gpt2)), model_grid::one};
    incremental_model with{model};
    CHECK(generate(with, std::span{prompts}.first(2), {.tokens = 31})[1].tokens.size() == 31);
    CHECK_THROWS_WITH(generate(with, std::span{prompts}.first(2), {.tokens = 32}),
                      "prompt 2 has 9 tokens, with the 32 that are to follow 41: the model's context is 40");
}
