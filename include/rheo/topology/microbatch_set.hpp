#pragma once
// SPDX-License-Identifier: Apache-2.0

// A set of the microbatches of one step, or of their slices, numbered as programs number items. It says which contributions
// an accumulator holds, so it travels with accumulators, and the complement of a union of such sets is the work left to do.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

struct microbatch_set {
    std::vector<std::uint64_t> words;  ///< bit m of all words is microbatch m; those before `first_word` are zero, and neither end of these is
    std::size_t first_word = 0;        ///< 0 of an empty set

    friend constexpr bool operator==(microbatch_set const&, microbatch_set const&) = default;

    constexpr bool contains(microbatch_id m) const { return ((word_at(at(m) / 64) >> (at(m) % 64)) & 1U) != 0; }

    template <class OnlyWhenCalled = void>
    constexpr void insert(microbatch_id m)
    {
        auto const word = at(m) / 64;
        reach(word, word + 1);
        words[word - first_word] |= std::uint64_t{1} << (at(m) % 64);
    }

    /// Inserts all of another set. Cost: its words, and room for those between the two
    template <class OnlyWhenCalled = void>
    constexpr microbatch_set& operator|=(microbatch_set const& other)
    {
        if (!other.empty()) {
            reach(other.first_word, other.end_word());
            for (std::size_t i = 0; i < other.words.size(); ++i) {
                words[other.first_word - first_word + i] |= other.words[i];
            }
        }
        return *this;
    }

    constexpr void clear()
    {
        words.clear();
        first_word = 0;
    }
    constexpr bool empty() const { return words.empty(); }

    constexpr int size() const
    {
        int count = 0;
        for (auto const word : words) {
            count += std::popcount(word);
        }
        return count;
    }

    /// One word of the whole.
    constexpr std::uint64_t word_at(std::size_t word) const { return word < first_word || word >= end_word() ? 0 : words[word - first_word]; }
    /// All words from here on are zero.
    constexpr std::size_t end_word() const { return first_word + words.size(); }

private:
    /// Makes room for words, whose ends are to be filled.
    template <class OnlyWhenCalled = void>
    constexpr void reach(std::size_t begin, std::size_t end)
    {
        if (words.empty()) {
            first_word = begin;
        } else if (begin < first_word) {
            words.insert(words.begin(), first_word - begin, 0);
            first_word = begin;
        }
        if (end > end_word()) {
            words.resize(end - first_word, 0);
        }
    }
};

/// The union of two sets.
template <class OnlyWhenCalled = void>
constexpr microbatch_set operator|(microbatch_set a, microbatch_set const& b)
{
    a |= b;
    return a;
}

/// True when no microbatch is in both.
constexpr bool disjoint(microbatch_set const& a, microbatch_set const& b)
{
    for (auto word = std::max(a.first_word, b.first_word); word < std::min(a.end_word(), b.end_word()); ++word) {
        if ((a.word_at(word) & b.word_at(word)) != 0) {
            return false;
        }
    }
    return true;
}

/// All microbatches 0 .. count-1 that are not in the set.
template <class OnlyWhenCalled = void>
constexpr microbatch_set complement(microbatch_set const& set, int count)
{
    microbatch_set result;
    result.words.resize((static_cast<std::size_t>(count) + 63) / 64, ~std::uint64_t{0});
    if (count % 64 != 0) {
        result.words.back() = (std::uint64_t{1} << (count % 64)) - 1;
    }
    for (auto word = set.first_word; word < std::min(set.end_word(), result.words.size()); ++word) {
        result.words[word] &= ~set.word_at(word);
    }
    while (!result.words.empty() && result.words.back() == 0) {
        result.words.pop_back();
    }
    auto const first = std::find_if(result.words.begin(), result.words.end(), [](std::uint64_t word) { return word != 0; });
    result.first_word = static_cast<std::size_t>(first - result.words.begin());
    result.words.erase(result.words.begin(), first);
    return result;
}

}  // namespace rheo::inline v0
