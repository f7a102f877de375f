// SPDX-License-Identifier: Apache-2.0
// Datasets of several sources, in epochs, within documents, with a source of its own for validation.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "executor/config/data_sources.hpp"
#include "executor/data/data.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;

namespace {

struct microbatch {
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> targets;
};

microbatch training(dataset const& data, microbatch_shape shape, std::int64_t step, int number, std::uint64_t seed = 5)
{
    microbatch result;
    for (int slice = 0; slice < shape.slices; ++slice) {
        std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows(shape))), targets(tokens.size());
        data.training_microbatch(seed, step_id{step}, microbatch_id{number}, tokens, targets, slice);
        result.tokens.insert(result.tokens.end(), tokens.begin(), tokens.end());
        result.targets.insert(result.targets.end(), targets.begin(), targets.end());
    }
    return result;
}

/// All bytes different, so that a token says where it is from.
std::string letters(int first, int count)
{
    std::string text;
    for (int i = 0; i < count; ++i) {
        text += static_cast<char>(first + i);
    }
    return text;
}

std::string refusal(data_config const& config, int vocabulary = 256, microbatch_shape shape = {1, 4})
{
    if (auto error = error_of_data(config); !error.empty()) {
        return error;
    }
    try {
        dataset{config, vocabulary, shape};
    } catch (exit_error const& error) {
        return error.what();
    }
    return "taken";
}

}  // namespace

TEST_CASE("mixed_data: an epoch has each sequence once")
{
    temporary_folder const folder;
    auto const path = folder.write("a", letters(0, 203));
    data_config const config{.paths = {path}, .validation = {folder.write("b", letters(0, 9))}, .order = data_order::epochs};
    microbatch_shape const shape{2, 4};
    constexpr int microbatches = 5;
    dataset const data{config, 256, shape, microbatches};
    REQUIRE(data.training_tokens() == 203);  // 50 sequences, 25 microbatches, 5 steps
    std::vector<std::vector<std::int32_t>> orders;
    for (int epoch = 0; epoch < 3; ++epoch) {
        std::set<std::int32_t> predicted;
        auto& order = orders.emplace_back();
        for (int step = 0; step < 5; ++step) {
            for (int m = 0; m < microbatches; ++m) {
                auto const batch = training(data, shape, 5 * epoch + step, m);
                for (std::size_t i = 0; i < batch.targets.size(); ++i) {
                    REQUIRE(batch.targets[i] == batch.tokens[i] + 1);
                    REQUIRE(predicted.insert(batch.targets[i]).second);
                }
                order.push_back(batch.tokens.front());
            }
        }
        CHECK(predicted.size() == 200);
    }
    CHECK(orders[0] != orders[1]);
    CHECK(orders[1] != orders[2]);
    CHECK_FALSE(std::is_sorted(orders[0].begin(), orders[0].end()));
    CHECK(training(data, shape, 0, 0, 6).tokens != training(data, shape, 0, 0, 7).tokens);
    // the order is one of sequences: how they are dealt to microbatches and slices changes nothing
    dataset const single{config, 256, {1, 4}, 2 * microbatches};
    dataset const sliced{config, 256, {.sequences = 1, .tokens = 4, .slices = 2}, 2 * microbatches};
    auto const both = training(data, shape, 1, 3);
    auto const first = training(single, {1, 4}, 1, 6), second = training(single, {1, 4}, 1, 7);
    CHECK(std::equal(first.tokens.begin(), first.tokens.end(), both.tokens.begin()));
    CHECK(std::equal(second.tokens.begin(), second.tokens.end(), both.tokens.begin() + 4));
    CHECK(training(sliced, {.sequences = 1, .tokens = 4, .slices = 2}, 1, 7).tokens == second.tokens);
}

TEST_CASE("mixed_data: sequences come from sources by weight")
{
    temporary_folder const folder;
    data_config config{.sources = {{3, folder.write("low", letters(0, 80))}, {1, folder.write("high", letters(128, 50))}}, .validation_fraction = 0.2};
    microbatch_shape const shape{4, 3};
    for (auto const order : {data_order::random, data_order::epochs}) {
        config.order = order;
        dataset const data{config, 256, shape, 8};
        CHECK(data.training_tokens() == 64 + 40);
        CHECK(data.validation_tokens() == 16 + 10);
        std::map<bool, int> sequences;
        std::map<std::int32_t, int> times;
        for (int step = 0; step < 13; ++step) {
            for (int m = 0; m < 8; ++m) {
                auto const batch = training(data, shape, step, m);
                for (std::size_t s = 0; s < 4; ++s) {
                    auto const low = batch.tokens[3 * s] < 128;
                    ++sequences[low];
                    for (std::size_t i = 3 * s; i < 3 * s + 3; ++i) {
                        REQUIRE(batch.targets[i] == batch.tokens[i] + 1);
                        REQUIRE(batch.targets[i] < (low ? 64 : 168));
                        ++times[batch.targets[i]];
                    }
                }
            }
        }
        CHECK(sequences[true] == 312);
        CHECK(sequences[false] == 104);  // 8 epochs of 13 sequences
        if (order == data_order::epochs) {
            for (int token = 129; token < 168; ++token) {
                CHECK(times[token] == 8);
            }
        }
        std::vector<std::int32_t> tokens(12), targets(12);
        data.validation_microbatch(microbatch_id{0}, tokens, targets);
        CHECK(std::all_of(tokens.begin(), tokens.end(), [](std::int32_t t) { return (t >= 64 && t < 80) || (t >= 168 && t < 178); }));
        CHECK_THAT(data.order(), ContainsSubstring("75 % of source 0, 25 % of source 1"));
        CHECK_THAT(data.description(), ContainsSubstring("2 text files, 104 bytes to train on and 26 to validate, "));
    }
    auto const digest_of = [&](std::vector<weighted_path> sources) {
        return dataset{{.sources = std::move(sources), .validation_fraction = 0.2}, 256, shape}.digest();
    };
    CHECK(digest_of({config.sources[0], config.sources[1]}) != digest_of({config.sources[1], config.sources[0]}));
    CHECK(digest_of({config.sources[0], config.sources[1]}) == digest_of({config.sources[0], config.sources[1]}));
}

TEST_CASE("mixed_data: sequences end with their document")
{
    temporary_folder const folder;
    std::string text;
    for (int d = 0; d < 40; ++d) {  // documents of 2 to 14 bytes that count up, and some that are only their end
        for (int i = 0; i < (d * 7) % 13 + 1; ++i) {
            text += static_cast<char>(100 + i);
        }
        text += '\n';
        text += d % 5 == 0 ? "\n" : "";
    }
    auto const path = folder.write("lines", text);
    for (auto const order : {data_order::random, data_order::epochs}) {
        data_config const config{.paths = {path}, .validation_fraction = 0.1, .order = order, .document_token = '\n'};
        for (microbatch_shape const shape : {microbatch_shape{3, 4}, microbatch_shape{.sequences = 1, .tokens = 6, .slices = 3}}) {
            dataset const data{config, 256, shape, 4};
            int padded = 0, ends = 0;
            for (int step = 0; step < 20; ++step) {
                auto const length = static_cast<std::size_t>(slice_tokens(shape));
                for (int m = 0; m < 4; ++m) {
                    auto const batch = training(data, shape, step, m);
                    bool over = false;
                    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
                        over = over && i % (shape.slices > 1 ? batch.tokens.size() : length) != 0;
                        if (batch.targets[i] == ignored_target) {
                            REQUIRE(batch.tokens[i] == '\n');
                            ++padded;
                            over = true;
                            continue;
                        }
                        REQUIRE_FALSE(over);  // nothing follows what is padded
                        REQUIRE(batch.tokens[i] != '\n');
                        REQUIRE((batch.targets[i] == batch.tokens[i] + 1 || batch.targets[i] == '\n'));
                        ends += batch.targets[i] == '\n' ? 1 : 0;
                    }
                }
            }
            CHECK(padded > 0);
            CHECK(ends > 0);
            CHECK_THAT(data.order(), ContainsSubstring("within documents that end with token 10"));
        }
    }
}

TEST_CASE("mixed_data: a source of its own validates")
{
    temporary_folder const folder;
    auto const train = folder.write("train", letters(0, 100));
    auto const valid = folder.write("valid", letters(200, 30));
    dataset const data{{.paths = {train}, .validation = {valid}}, 256, {2, 5}};
    CHECK(data.training_tokens() == 100);
    CHECK(data.validation_tokens() == 30);
    std::vector<std::int32_t> tokens(10), targets(10);
    for (int m = 0; m < 5; ++m) {
        data.validation_microbatch(microbatch_id{m}, tokens, targets);
        CHECK(std::all_of(tokens.begin(), tokens.end(), [](std::int32_t t) { return t >= 200; }));
    }
    CHECK(data.digest() != dataset{{.paths = {train}, .validation_fraction = 0.2}, 256, {2, 5}}.digest());
    CHECK(data.order().empty());
    CHECK(data.path(0) == train);
    CHECK(data.path(1) == valid);
}

TEST_CASE("mixed_data: bad sources are refused in a sentence")
{
    temporary_folder const folder;
    auto const text = folder.write("text", letters(0, 100));
    auto const entries = [](std::vector<std::string> const& list) { return data_sources(list); };
    CHECK(entries({" 0.5 : a b ", "2:c:d"}) == std::vector<weighted_path>{{0.5, "a b"}, {2, "c:d"}});
    for (auto const* const bad : {"texts", "0: texts", "-1: texts", "1x: texts", "inf: texts", "1:", ": texts"}) {
        CHECK_THAT(entries({bad}).error(), ContainsSubstring("expected WEIGHT: PATH with a weight above 0"));
    }
    CHECK_THAT(refusal({.paths = {text}, .sources = {{1, text}}}), ContainsSubstring("data.sources gives the files and folders in place of data.paths"));
    CHECK_THAT(refusal({.sources = {{1, text}, {5000, text}}}), ContainsSubstring("each source needs at least one sequence of 4096"));
    CHECK_THAT(refusal({.paths = {text}, .document_token = 256}), ContainsSubstring("data.document_token = 256 is not in the vocabulary"));
    auto const ends = folder.write("ends", std::string(50, '\n'));
    CHECK_THAT(refusal({.paths = {ends}, .document_token = '\n'}), ContainsSubstring("has no document of two tokens or more"));
    auto const token_file = folder.write("t.bin", "");
    CHECK_THAT(refusal({.sources = {{1, text}, {1, token_file}}}), ContainsSubstring("is cut off"));
    CHECK_THAT(refusal({.paths = {text}, .validation = {(folder.path / "gone").string()}}), ContainsSubstring("gone' does not exist"));
    CHECK_THAT(refusal({.paths = {text}, .validation = {folder.write("short", "abc")}}), ContainsSubstring("the validation split has 3 tokens of 3 in all"));
}
