// SPDX-License-Identifier: Apache-2.0
#include "executor/inference/choices.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"
#include "executor/text/corpus/json_line.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

constexpr int depth = 64;
constexpr std::string_view blanks = " \t\n\r\f\v";

choice_question read_question(std::string_view line, std::string const& where)
{
    try {
        auto const object = parse_strict(line, depth);
        choice_question made;
        made.where = where;
        made.context = text_member(object, object.contains("context") ? "context" : "prompt");
        for (auto const& choice : list_member(object, "choices")) {
            if (!choice.is_string() || choice.get_ref<std::string const&>().empty()) {
                throw json_error{"has a choice that is not a text, or an empty one"};
            }
            made.choices.push_back(choice.get<std::string>());
        }
        if (made.choices.empty()) {
            throw json_error{"has no choices"};
        }
        made.answer = static_cast<std::size_t>(integer_member(object, "answer", {0, std::ssize(made.choices) - 1}));
        return made;
    } catch (json_error const& error) {
        throw exit_error{exit_code::bad_data, fmt::format("{} {}; expected {{\"context\": text, \"choices\": [texts], \"answer\": number from 0}} on each line",
                                                          where, error.what())};
    }
}

/// The tokens of context and choice, and how many of them are the context's.
struct encoded_choice {
    std::vector<token_id> tokens;
    std::int64_t context;
};

encoded_choice encode(text_coder& coder, std::string const& context, std::string const& choice)
{
    auto const alone = std::ssize(coder.encode(context));
    encoded_choice made{coder.encode(context + choice), alone};
    if (alone == 0) {
        if (auto const end = coder.end()) {  // as at the beginning of a document
            made.tokens.insert(made.tokens.begin(), *end);
            made.context = 1;
        }
    }
    return made;
}

}  // namespace

std::vector<choice_question> read_choices(std::string_view text, std::string const& file)
{
    std::vector<choice_question> all;
    for_each_line(text, 1,
                  [&](std::string_view line, std::int64_t number) { all.push_back(read_question(line, fmt::format("'{}', line {},", file, number))); });
    return all;
}

std::size_t choice_scores::best() const
{
    return static_cast<std::size_t>(std::max_element(log_likelihood.begin(), log_likelihood.end()) - log_likelihood.begin());
}

std::size_t choice_scores::best_per_byte() const
{
    std::size_t best = 0;
    for (std::size_t c = 1; c < bytes.size(); ++c) {
        if (log_likelihood[c] / static_cast<double>(bytes[c]) > log_likelihood[best] / static_cast<double>(bytes[best])) {
            best = c;
        }
    }
    return best;
}

choice_scores score(incremental_model& with, text_coder& coder, choice_question const& question)
{
    auto const kept = question.context.find_last_not_of(blanks) + 1;
    auto const context = question.context.substr(0, kept);
    auto const between = question.context.substr(kept);
    auto& model = with.model();
    cached_sequence sequence{model};
    std::vector<token_id> computed;
    choice_scores scores;
    for (auto const& choice : question.choices) {
        auto const [tokens, begins] = encode(coder, context, between + choice);
        expect_in_vocabulary(tokens, model, question.where);
        if (begins == 0) {
            throw exit_error{exit_code::bad_data,
                             fmt::format("{} has an empty context, and there is no token for the beginning of a document", question.where)};
        }
        if (std::ssize(tokens) > model.context() || begins >= std::ssize(tokens)) {
            throw exit_error{exit_code::bad_data,
                             fmt::format("{} has {} tokens, {} of them of the context: the model's context is {}, and a choice has at least one",
                                         question.where, tokens.size(), begins, model.context())};
        }
        // What the sequence has in common with the last one is there; the last token of the context is computed again for what follows it.
        auto const same = std::mismatch(tokens.begin(), tokens.end(), computed.begin(), computed.end()).first - tokens.begin();
        sequence.tokens = std::min<std::int64_t>(same, begins - 1);
        auto const rest = std::span{tokens}.first(tokens.size() - 1).subspan(static_cast<std::size_t>(sequence.tokens));
        auto const first = sequence.tokens;
        continuation const next{&sequence, rest, begins - 1 - first};
        loss_sum loss;
        with.forward({&next, 1}, [&](std::size_t, std::int64_t index, std::span<float const> logits) {
            auto const target = tokens[static_cast<std::size_t>(first + index + 1)];
            host::cross_entropy_forward(model.backend().pool(),
                                        {.rows = 1, .vocabulary = std::ssize(logits), .logits = logits.data(), .targets = &target, .loss = &loss});
        });
        computed.assign(tokens.begin(), tokens.end() - 1);
        scores.log_likelihood.push_back(loss.not_finite ? -std::numeric_limits<double>::infinity() : -static_cast<double>(loss.fixed) / loss_units_per_nat);
        auto const blank = std::min(choice.find_first_not_of(blanks), choice.size());
        scores.bytes.push_back(std::max<std::int64_t>(1, std::ssize(choice) - static_cast<std::int64_t>(blank)));
    }
    return scores;
}

}  // namespace rheo::inline v0
