// SPDX-License-Identifier: Apache-2.0
#include "executor/text/corpus/bpe_training.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <queue>
#include <utility>

#include <nlohmann/json.hpp>

#include "executor/text/byte_level.hpp"
#include "executor/text/pre_tokenizer.hpp"
#include "executor/text/utf8.hpp"

namespace rheo::inline v0 {

namespace {

using token = std::int32_t;

constexpr auto end_token = "<|endoftext|>";

std::uint64_t pair_of(token left, token right) { return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right); }

struct word {
    std::vector<token> symbols;
    std::int64_t count;
};

struct pair_state {
    std::int64_t count = 0;
    std::vector<std::size_t> words;  ///< in which it is, or was
};

struct candidate {
    std::int64_t count;
    std::uint64_t pair;
    bool operator<(candidate const& other) const { return count != other.count ? count < other.count : pair > other.pair; }
};

class learner {
public:
    learner(word_counts const& counts, std::size_t vocabulary) : vocabulary_{vocabulary}
    {
        auto characters = byte_level_characters();
        std::sort(characters.begin(), characters.end());
        std::array<token, 256> symbols{};
        for (std::size_t i = 0; i < characters.size(); ++i) {
            std::string text;
            append_utf8(text, characters[i]);
            symbols[static_cast<unsigned char>((*bytes_of_byte_level(text))[0])] = static_cast<token>(i);
            add(std::move(text));
        }
        std::vector<std::pair<std::string_view, std::int64_t>> sorted(counts.begin(), counts.end());
        std::sort(sorted.begin(), sorted.end());
        for (auto const& [text, count] : sorted) {
            auto& made = words_.emplace_back();
            made.count = count;
            for (char const c : text) {
                made.symbols.push_back(symbols[static_cast<unsigned char>(c)]);
            }
        }
        for (std::size_t i = 0; i < words_.size(); ++i) {
            count_pairs(i, 1);
        }
        for (auto const& [pair, state] : pairs_) {
            queue_.push({state.count, pair});
        }
        changed_.clear();
    }

    void run()
    {
        while (names_.size() + 1 < vocabulary_ && !queue_.empty()) {  // one is for the end of a text
            auto best = queue_.top();
            queue_.pop();
            auto& state = pairs_[best.pair];
            if (best.count != state.count) {
                best.count = state.count;
                if (best.count > 0) {
                    queue_.push(best);
                }
                continue;
            }
            if (best.count < 2) {
                return;
            }
            merge(best.pair, std::exchange(state.words, {}));
        }
    }

    nlohmann::json vocabulary() const { return numbers_; }
    nlohmann::json const& merges() const { return merges_; }
    std::size_t size() const { return names_.size(); }

private:
    std::size_t vocabulary_;
    std::vector<std::string> names_;
    std::unordered_map<std::string, token> numbers_;
    std::vector<word> words_;
    std::unordered_map<std::uint64_t, pair_state> pairs_;
    std::priority_queue<candidate> queue_;
    std::vector<std::uint64_t> changed_;  ///< pairs that are counted more often than before
    nlohmann::json merges_ = nlohmann::json::array();

    token add(std::string name)
    {
        auto const [found, is_new] = numbers_.emplace(std::move(name), static_cast<token>(names_.size()));
        if (is_new) {
            names_.push_back(found->first);
        }
        return found->second;
    }

    void count_pairs(std::size_t which, int sign)
    {
        auto const& [symbols, count] = words_[which];
        for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
            auto const pair = pair_of(symbols[i], symbols[i + 1]);
            auto& state = pairs_[pair];
            state.count += sign * count;
            if (sign > 0) {
                if (state.words.empty() || state.words.back() != which) {
                    state.words.push_back(which);
                }
                changed_.push_back(pair);
            }
        }
    }

    void merge(std::uint64_t pair, std::vector<std::size_t> in)
    {
        auto const left = static_cast<token>(pair >> 32);
        auto const right = static_cast<token>(pair & 0xffffffffU);
        auto const& l = names_[static_cast<std::size_t>(left)];
        auto const& r = names_[static_cast<std::size_t>(right)];
        merges_.push_back({l, r});
        auto const made = add(l + r);
        std::sort(in.begin(), in.end());
        in.erase(std::unique(in.begin(), in.end()), in.end());
        changed_.clear();
        for (auto const which : in) {
            auto& symbols = words_[which].symbols;
            auto const has = [&](std::size_t i) { return i + 1 < symbols.size() && symbols[i] == left && symbols[i + 1] == right; };
            std::size_t first = 0;
            while (first < symbols.size() && !has(first)) {
                ++first;
            }
            if (first >= symbols.size()) {
                continue;  // it was there once
            }
            count_pairs(which, -1);
            std::size_t to = first;
            for (auto from = first; from < symbols.size(); ++to) {
                auto const joins = has(from);
                symbols[to] = joins ? made : symbols[from];
                from += joins ? 2 : 1;
            }
            symbols.resize(to);
            count_pairs(which, 1);
        }
        std::sort(changed_.begin(), changed_.end());
        changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
        for (auto const one : changed_) {
            if (auto const count = pairs_[one].count; count > 0 && one != pair) {
                queue_.push({count, one});
            }
        }
    }
};

}  // namespace

void count_words(std::string_view text, word_counts& counts)
{
    static auto const words = read_pre_tokenizer({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}});
    thread_local std::string key;
    words.split(text, true, 0, [&](std::string_view piece) {
        key.assign(piece);
        ++counts[key];
    });
}

std::string train_bpe(word_counts const& counts, std::int64_t vocabulary)
{
    learner learned{counts, static_cast<std::size_t>(vocabulary)};
    learned.run();
    auto const level = [](bool regex) {
        return nlohmann::json{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", regex}};
    };
    auto tokens = learned.vocabulary();
    tokens[end_token] = learned.size();
    nlohmann::ordered_json file;
    file["version"] = "1.0";
    file["truncation"] = nullptr;
    file["padding"] = nullptr;
    file["added_tokens"] = {{{"id", learned.size()},
                             {"content", end_token},
                             {"single_word", false},
                             {"lstrip", false},
                             {"rstrip", false},
                             {"normalized", false},
                             {"special", true}}};
    file["normalizer"] = nullptr;
    file["pre_tokenizer"] = level(true);
    file["post_processor"] = nullptr;
    file["decoder"] = level(true);
    file["model"] = {{"type", "BPE"},
                     {"dropout", nullptr},
                     {"unk_token", nullptr},
                     {"continuing_subword_prefix", nullptr},
                     {"end_of_word_suffix", nullptr},
                     {"fuse_unk", false},
                     {"byte_fallback", false},
                     {"ignore_merges", false},
                     {"vocab", tokens},
                     {"merges", learned.merges()}};
    return file.dump(1) + "\n";
}

}  // namespace rheo::inline v0
