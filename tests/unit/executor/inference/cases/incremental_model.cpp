// SPDX-License-Identifier: Apache-2.0
// Logits behind a cache: those of the whole sequence, bit for bit, however it is cut and whatever is beside it; and those of a training, within rounding.
#include "executor/inference/incremental_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rheo/units/exit_error.hpp"
#include "small_models.hpp"

using namespace rheo;
using namespace small_models;

namespace {

using rows_of_logits = std::vector<std::vector<float>>;

/// All logits of a sequence whose tokens are computed in parts of these lengths, the last one repeated.
rows_of_logits logits_in_parts(incremental_model& with, std::vector<token_id> const& tokens, std::vector<std::int64_t> const& lengths)
{
    cached_sequence sequence{with.model()};
    rows_of_logits all;
    for (std::size_t part = 0; sequence.tokens < std::ssize(tokens); ++part) {
        auto const first = sequence.tokens;
        auto const length = std::min(lengths[std::min(part, lengths.size() - 1)], std::ssize(tokens) - first);
        continuation const next{&sequence, std::span{tokens}.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(length))};
        with.forward({&next, 1}, [&](std::size_t, std::int64_t index, std::span<float const> logits) {
            CHECK(first + index == std::ssize(all));
            all.emplace_back(logits.begin(), logits.end());
        });
    }
    return all;
}

bool same_bits(rows_of_logits const& a, rows_of_logits const& b)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](auto const& x, auto const& y) { return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0; });
}

}  // namespace

TEST_CASE("incremental_model: cached logits have the whole's bits")
{
    for (auto const& [name, config] : families()) {
        CAPTURE(name);
        temporary_folder const folder;
        auto const run = write_checkpoint(folder, config);
        loaded_model model{run, model_grid::one};
        auto const tokens = random_tokens(context, 3);
        incremental_model with{model};
        auto const whole = logits_in_parts(with, tokens, {context});
        REQUIRE(whole.size() == tokens.size());
        CHECK(same_bits(logits_in_parts(with, tokens, {1}), whole));
        CHECK(same_bits(logits_in_parts(with, tokens, {13, 1}), whole));
        CHECK(same_bits(logits_in_parts(with, tokens, {3, 7, 2}), whole));
        // passes of five rows, three logits at once, three threads
        loaded_model by_three{run, model_grid::one, 3};
        incremental_model narrow{by_three, 5, 3};
        CHECK(same_bits(logits_in_parts(narrow, tokens, {context}), whole));
        CHECK(same_bits(logits_in_parts(narrow, tokens, {11, 4}), whole));
        // other tokens before change what follows
        auto other = tokens;
        other.front() = (other.front() + 1) % vocabulary;
        CHECK_FALSE(same_bits(logits_in_parts(with, other, {1}), whole));
    }
}

TEST_CASE("incremental_model: logits are a training's within rounding")
{
    for (auto const& [name, config] : families()) {
        CAPTURE(name);
        temporary_folder const folder;
        loaded_model model{write_checkpoint(folder, config), model_grid::one};
        auto const tokens = random_tokens(context, 4);
        incremental_model with{model};
        auto const ours = logits_in_parts(with, tokens, {9, 1});
        auto const theirs = training_logits(model, tokens);
        float largest = 0;
        float difference = 0;
        for (std::size_t row = 0; row < tokens.size(); ++row) {
            for (std::size_t t = 0; t < ours[row].size(); ++t) {
                largest = std::max(largest, std::fabs(theirs[row][t]));
                difference = std::max(difference, std::fabs(ours[row][t] - theirs[row][t]));
            }
        }
        CHECK(largest > 0.5F);
        CHECK(difference <= 1e-5F * largest);  // sums of up to 192 products in another order
    }
}

TEST_CASE("incremental_model: sequences are independent")
{
    for (auto const& [name, config] : families()) {
        CAPTURE(name);
        temporary_folder const folder;
        loaded_model model{write_checkpoint(folder, config), model_grid::one};
        incremental_model with{model, 16, 4};
        std::vector<std::vector<token_id>> const texts{random_tokens(17, 5), random_tokens(3, 6), random_tokens(30, 7)};
        std::vector<rows_of_logits> alone;
        for (auto const& text : texts) {
            alone.push_back(logits_in_parts(with, text, {1}));
        }
        // All at once, in turns: two tokens of the first, one of the second, five of the third; those that have ended are left out.
        std::vector<cached_sequence> sequences(texts.size(), cached_sequence{model});
        std::vector<rows_of_logits> together(texts.size());
        std::vector<std::int64_t> const steps{2, 1, 5};
        for (bool more = true; more;) {
            std::vector<continuation> all;
            std::vector<std::size_t> of;
            for (std::size_t s = 0; s < texts.size(); ++s) {
                auto const left = std::ssize(texts[s]) - sequences[s].tokens;
                auto const some = std::min(steps[s], left);
                if (some > 0) {
                    all.push_back({&sequences[s], std::span{texts[s]}.subspan(static_cast<std::size_t>(sequences[s].tokens), static_cast<std::size_t>(some))});
                    of.push_back(s);
                }
            }
            with.forward(
                all, [&](std::size_t which, std::int64_t, std::span<float const> logits) { together[of[which]].emplace_back(logits.begin(), logits.end()); });
            more = !all.empty();
        }
        for (std::size_t s = 0; s < texts.size(); ++s) {
            CHECK(same_bits(together[s], alone[s]));
        }
    }
}

TEST_CASE("incremental_model: a sequence set back continues from there")
{
    temporary_folder const folder;
    loaded_model model{write_checkpoint(folder, base(model_family::llama)), model_grid::one};
    incremental_model with{model};
    auto const tokens = random_tokens(20, 8);
    auto other = tokens;
    std::fill(other.begin() + 12, other.end(), 5);
    auto const expected = logits_in_parts(with, other, {20});
    cached_sequence sequence{model};
    auto const ignore = [](std::size_t, std::int64_t, std::span<float const>) {};
    continuation const first{&sequence, tokens};
    with.forward({&first, 1}, ignore);
    CHECK(sequence.tokens == 20);
    sequence.tokens = 12;
    rows_of_logits logits;
    continuation const second{&sequence, std::span{other}.subspan(12), 3};
    with.forward({&second, 1}, [&](std::size_t, std::int64_t, std::span<float const> row) { logits.emplace_back(row.begin(), row.end()); });
    CHECK(same_bits(logits, {expected.begin() + 15, expected.end()}));
    // four floats of keys and values for each head, layer and token; memory is for more tokens at times
    CHECK(sequence.cache.bytes_of_token() == 2 * 2 * 2 * 8 * 4);
    CHECK(sequence.cache.bytes() >= 20 * sequence.cache.bytes_of_token());
}

TEST_CASE("incremental_model: the context is the end")
{
    temporary_folder const folder;
    loaded_model model{write_checkpoint(folder, base(model_family::gpt2)), model_grid::one};
    incremental_model with{model};
    auto const tokens = random_tokens(context + 1, 9);
    cached_sequence sequence{model};
    continuation const next{&sequence, tokens};
    bool called = false;
    auto const note = [&](std::size_t, std::int64_t, std::span<float const>) { called = true; };
    CHECK_THROWS_WITH(with.forward({&next, 1}, note), "a sequence of 41 tokens goes beyond the model's context of 40");
    CHECK(sequence.tokens == 0);
    CHECK_FALSE(called);
}

TEST_CASE("model_part: parts cover the layers, none is large")
{
    auto config = base(model_family::llama);
    config.model.blocks = 7;
    config.model.vocabulary = 5;  // so that blocks decide
    auto const model = running_model(config);
    for (int count = 1; count <= 8; ++count) {
        layer_id next{0};
        int most = 0;
        for (int number = 0; number < count; ++number) {
            auto const part = layers_of(model, number, count);
            CHECK(part.begin == next);
            CHECK(part.begin < part.end);
            next = part.end;
            most = std::max(most, size(part));
        }
        CHECK(next == layer_id{8});  // the last layer is the last part's besides
        CHECK(most <= (8 + count - 1) / count + 1);
    }
    CHECK(size(layers_of(model, 0, 4)) == 3);  // the table of tokens costs little
    CHECK_THROWS_WITH(layers_of(model, 0, 9), "9 ranks are started, but the model has 8 layers to share between them");
}

TEST_CASE("model_part: a part holds the parameters of its layers")
{
    temporary_folder const folder;
    auto config = base(model_family::gpt2);
    config.model.tied = true;  // the first and the last layer share a table
    auto const run = write_checkpoint(folder, config);
    auto const held = [&](int number) {
        model_part part;
        part.number = number;
        part.count = 3;
        loaded_model const model{run, model_grid::one, 1, part};
        std::vector<std::string> names;
        for (tensor_id t{0}; at(t) < model.info().tensors.size(); ++t) {
            if (model.state().holds(t)) {
                names.push_back(model.info().tensors[at(t)].name);
                CHECK_FALSE(model.state().keeps(t));  // no moments
            }
        }
        return names;
    };
    auto const has = [](std::vector<std::string> const& names, std::string const& name) { return std::find(names.begin(), names.end(), name) != names.end(); };
    CHECK(has(held(0), "wte.weight"));
    CHECK(has(held(0), "wpe.weight"));
    CHECK_FALSE(has(held(0), "h.0.attn.c_attn.weight"));
    CHECK(held(1).size() == 12);
    CHECK(has(held(1), "h.0.attn.c_attn.weight"));
    CHECK(has(held(2), "h.1.attn.c_attn.weight"));
    CHECK(has(held(2), "wte.weight"));
    CHECK_FALSE(has(held(2), "wpe.weight"));
}
