#pragma once
// SPDX-License-Identifier: Apache-2.0

// A set of the microbatches of one step, or of their slices, numbered as programs number items. It says which contributions
// an accumulator holds, so it travels with accumulators, and the complement of a union of such sets is the work left to do.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

struct microbatch_set {
    std::vector<std::uint64_t> words;  ///< bit m of the whole is microbatch m; no trailing zero words

    friend constexpr bool operator==(microbatch_set const&, microbatch_set const&) = default;

    constexpr bool contains(microbatch_id m) const
    {
        auto const word = at(m) / 64;
        return word < words.size() && ((words[word] >> (at(m) % 64)) & 1U) != 0;
    }

    template <class OnlyWhenCalled = void>
    constexpr void insert(microbatch_id m)
    {
        auto const word = at(m) / 64;
        if (word >= words.size()) {
            words.resize(word + 1, 0);
        }
        words[word] |= std::uint64_t{1} << (at(m) % 64);
    }

    constexpr void clear() { words.clear(); }
    constexpr bool empty() const { return words.empty(); }

    constexpr int size() const
    {
        int count = 0;
        for (auto const word : words) {
            count += std::popcount(word);
        }
        return count;
    }
};

/// The union of two sets.
template <class OnlyWhenCalled = void>
constexpr microbatch_set operator|(microbatch_set a, microbatch_set const& b)
{
    if (a.words.size() < b.words.size()) {
        a.words.resize(b.words.size(), 0);
    }
    for (std::size_t i = 0; i < b.words.size(); ++i) {
        a.words[i] |= b.words[i];
    }
    return a;
}

/// True when no microbatch is in both.
constexpr bool disjoint(microbatch_set const& a, microbatch_set const& b)
{
    for (std::size_t i = 0; i < a.words.size() && i < b.words.size(); ++i) {
        if ((a.words[i] & b.words[i]) != 0) {
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
    for (std::size_t i = 0; i < set.words.size() && i < result.words.size(); ++i) {
        result.words[i] &= ~set.words[i];
    }
    while (!result.words.empty() && result.words.back() == 0) {
        result.words.pop_back();
    }
    return result;
}

}  // namespace rheo::inline v0
