// SPDX-License-Identifier: Apache-2.0
#include "executor/text/corpus/bpe_training.hpp"

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/text/tokenizer.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

using symbols = std::vector<std::string>;

/// The definition, all pairs counted again for each merge. Symbols are compared by their numbers: single characters by their codes, merges by age.
std::vector<std::pair<std::string, std::string>> merges_by_definition(std::map<std::string, std::int64_t> const& words, int most)
{
    std::vector<std::pair<symbols, std::int64_t>> split;
    for (auto const& [word, count] : words) {
        symbols each;
        for (char const c : word) {
            each.emplace_back(1, c);
        }
        split.emplace_back(each, count);
    }
    std::map<std::string, int> numbers;
    for (int c = 0; c < 128; ++c) {
        numbers.emplace(std::string(1, static_cast<char>(c)), c);
    }
    std::vector<std::pair<std::string, std::string>> merges;
    while (static_cast<int>(numbers.size()) < 128 + most) {
        std::map<std::pair<int, int>, std::pair<std::int64_t, std::pair<std::string, std::string>>> counts;
        for (auto const& [each, count] : split) {
            for (std::size_t i = 0; i + 1 < each.size(); ++i) {
                auto& found = counts[{numbers[each[i]], numbers[each[i + 1]]}];
                found.first += count;
                found.second = {each[i], each[i + 1]};
            }
        }
        std::int64_t best = 1;
        std::pair<std::string, std::string> pair;
        for (auto const& [key, found] : counts) {
            if (found.first > best) {
                best = found.first;
                pair = found.second;
            }
        }
        if (best == 1) {
            break;
        }
        merges.push_back(pair);
        numbers.emplace(pair.first + pair.second, static_cast<int>(numbers.size()));
        for (auto& [each, count] : split) {
            for (std::size_t i = 0; i + 1 < each.size(); ++i) {
                if (each[i] == pair.first && each[i + 1] == pair.second) {
                    each[i] += each[i + 1];
                    each.erase(each.begin() + static_cast<std::ptrdiff_t>(i) + 1);
                }
            }
        }
    }
    return merges;
}

}  // namespace

TEST_CASE("bpe_training: merges are those of the definition")
{
    std::mt19937 draw{4};
    for (int round = 0; round < 60; ++round) {
        std::map<std::string, std::int64_t> words;
        for (int i = 0; i < 30; ++i) {
            std::string word;
            for (auto left = 1 + draw() % 9; left > 0; --left) {
                word += "aabc"[draw() % 4];
            }
            words[word] += 1 + static_cast<std::int64_t>(draw() % 5);
        }
        word_counts const counts(words.begin(), words.end());
        auto const file = nlohmann::json::parse(train_bpe(counts, 257 + 25));
        std::vector<std::pair<std::string, std::string>> merges;
        for (auto const& merge : file["model"]["merges"]) {
            merges.emplace_back(merge[0], merge[1]);
        }
        REQUIRE(merges == merges_by_definition(words, 25));
    }
}

TEST_CASE("bpe_training: batches and threads change no byte")
{
    temporary_folder const folder;
    std::mt19937 draw{11};
    std::string const parts[] = {"low",          "newer",    " ",        "  ",       "\n",           "\n",           "\r\n",
                                 "\t",           "12",       "'s",       ".",        "\xe6\x97\xa5", "\xe6\x9c\xac", "\xe3\x80\x80",
                                 "\xe3\x80\x82", "\xc2\xa0", "\xc3\xa9", "\xcc\x81", "\xff",         "\xe2\x80\xa8"};
    std::string text;
    for (int i = 0; i < 20'000; ++i) {
        text += parts[draw() % std::size(parts)];
    }
    auto const path = folder.write("text", text);
    auto const trained = [&](int threads, std::size_t batch) {
        auto const out = (folder.path / "out.json").string();
        train_tokenizer_file({.paths = {path}, .out = out, .kind = "bpe", .vocabulary = 500, .threads = threads, .batch_bytes = batch});
        return folder.read("out.json");
    };
    auto const whole = trained(1, 1 << 22);
    CHECK(tokenizer{whole}.vocabulary() > 300);
    for (std::size_t const batch : {50U, 700U, 9'000U}) {
        CHECK((trained(3, batch) == whole));
    }
}

TEST_CASE("bpe_training: a trained tokenizer encodes what it saw")
{
    word_counts counts;
    for (int i = 0; i < 10; ++i) {
        count_words("low lower lowest, the newest and the widest: na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac\n", counts);
    }
    auto const text = train_bpe(counts, 330);
    CHECK(train_bpe(word_counts(counts.begin(), counts.end()), 330) == text);  // whatever the order of the words
    tokenizer const made{text};
    CHECK(made.vocabulary() <= 330);
    CHECK(made.id("<|endoftext|>") == made.vocabulary() - 1);
    CHECK(made.encode("lowest").size() <= 2);
    CHECK(made.encode(" the").size() == 1);
    CHECK(made.encode("\xe6\x97\xa5\xe6\x9c\xac").size() < 6);
    CHECK(made.decode(made.encode("any \xf0\x9f\x8d\x8e text")) == "any \xf0\x9f\x8d\x8e text");
    CHECK(tokenizer{train_bpe({{"ab", 1}}, 1000)}.vocabulary() == 257);  // no pair was seen twice
}
