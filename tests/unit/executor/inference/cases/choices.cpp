// SPDX-License-Identifier: Apache-2.0
// Multiple-choice questions against sums of log-likelihoods over the logits of whole texts.
#include "executor/inference/choices.hpp"

#include <cmath>

#include "rheo/units/exit_error.hpp"
#include "small_models.hpp"

using namespace rheo;
using namespace small_models;

namespace {

run_config of_bytes()
{
    auto config = base(model_family::llama);
    config.model.vocabulary = 256;
    return config;
}

/// log p(text[from ...] | text[... from - 1]), byte by byte.
double log_likelihood(loaded_model& model, std::string const& text, std::size_t from)
{
    std::vector<std::int32_t> tokens;
    for (char const c : text) {
        tokens.push_back(static_cast<unsigned char>(c));
    }
    auto const logits = training_logits(model, tokens);
    double sum = 0;
    for (auto at = from; at < tokens.size(); ++at) {
        double total = 0;
        for (auto const logit : logits[at - 1]) {
            total += std::exp(static_cast<double>(logit));
        }
        sum += static_cast<double>(logits[at - 1][static_cast<std::size_t>(tokens[at])]) - std::log(total);
    }
    return sum;
}

}  // namespace

TEST_CASE("choices: likelihoods are those of whole texts")
{
    temporary_folder const folder;
    loaded_model model{write_checkpoint(folder, of_bytes()), model_grid::one};
    incremental_model with{model, 8, 3};
    text_coder bytes{""};
    for (auto const& [context, choices] : {std::pair<std::string, std::vector<std::string>>{"The sky is", {" blue", " blue and red", " b", " green"}},
                                           {"The sky is ", {"blue", " x"}},
                                           {"a", {"bc", "bc"}}}) {
        auto const scores = score(with, bytes, {context, choices, 0, "here"});
        REQUIRE(scores.log_likelihood.size() == choices.size());
        auto const begins = context.find_last_not_of(' ') + 1;  // blanks at the end are the choice's
        for (std::size_t c = 0; c < choices.size(); ++c) {
            CHECK(std::fabs(scores.log_likelihood[c] - log_likelihood(model, context + choices[c], begins)) < 1e-4);
            CHECK(scores.bytes[c] == std::ssize(choices[c]) - (choices[c].front() == ' ' ? 1 : 0));
        }
    }
    CHECK_THROWS_WITH(score(with, bytes, {"", {"x"}, 0, "'q', line 1,"}),
                      "'q', line 1, has an empty context, and there is no token for the beginning of a document");
    CHECK_THROWS_WITH(score(with, bytes, {std::string(30, 'a'), {"b", std::string(11, 'c')}, 0, "'q', line 2,"}),
                      "'q', line 2, has 41 tokens, 30 of them of the context: the model's context is 40, and a choice has at least one");
}

TEST_CASE("choices: the best by sum and by bytes")
{
    choice_scores const scores{{-6, -5, -8, -5}, {3, 1, 8, 2}};
    CHECK(scores.best() == 1);           // of equal ones the first
    CHECK(scores.best_per_byte() == 2);  // -2, -5, -1, -2.5
}

TEST_CASE("choices: lines are read, and refused by number")
{
    auto const read = read_choices(
        "{\"context\": \"a\", \"choices\": [\" b\", \" c\"], \"answer\": 1, \"id\": 7}\n\n{\"prompt\": \"d\", \"choices\": [\"e\"], \"answer\": 0}", "q");
    REQUIRE(read.size() == 2);
    CHECK(read[0].context == "a");
    CHECK(read[0].choices == std::vector<std::string>{" b", " c"});
    CHECK(read[0].answer == 1);
    CHECK(read[1].context == "d");
    CHECK(read[1].where == "'q', line 3,");
    for (auto const* const wrong : {"{\"context\": \"a\", \"choices\": [\"b\"], \"answer\": 1}", "{\"context\": \"a\", \"choices\": [], \"answer\": 0}",
                                    "{\"context\": \"a\", \"choices\": [\"\"], \"answer\": 0}", "{\"choices\": [\"b\"], \"answer\": 0}", "[]", "x",
                                    "{\"context\": 1, \"choices\": [\"b\"], \"answer\": 0}", "{\"context\": \"a\", \"choices\": [2], \"answer\": 0}"}) {
        CHECK_THROWS_AS(read_choices(wrong, "q"), exit_error);
        CHECK_THROWS_WITH(read_choices(wrong, "q"), Catch::Matchers::StartsWith("'q', line 1, "));
    }
}
