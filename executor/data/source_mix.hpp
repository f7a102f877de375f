#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which source each sequence of a training comes from. At every moment the sequences of each source follow the weights as closely as whole numbers can: each
// goes to the source that is furthest behind. The pattern repeats after 4,096 sequences, so any place is computed directly.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "executor/config/data_sources.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

class source_mix {
public:
    static constexpr int cycle = sequences_of_mix;

    struct place {
        int source = 0;
        std::int64_t number = 0;  ///< of the sequence among those of its source, from 0
        friend constexpr bool operator==(place const&, place const&) = default;
    };

    /// @pre weights are above 0, each at least 1 / cycle of their sum
    explicit source_mix(std::span<double const> weights) : counts_(weights.size())
    {
        auto const sum = std::accumulate(weights.begin(), weights.end(), 0.0);
        expects(!weights.empty() && *std::min_element(weights.begin(), weights.end()) * cycle >= sum, "each source has a part of the sequences");
        std::vector<std::size_t> by_rest(weights.size());
        std::iota(by_rest.begin(), by_rest.end(), std::size_t{0});
        auto const rest = [&](std::size_t s) { return weights[s] / sum * cycle - static_cast<double>(counts_[s]); };
        for (std::size_t s = 0; s < weights.size(); ++s) {
            counts_[s] = static_cast<std::int64_t>(weights[s] / sum * cycle);
        }
        std::stable_sort(by_rest.begin(), by_rest.end(), [&](std::size_t a, std::size_t b) { return rest(a) > rest(b); });
        for (std::size_t i = 0; std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0}) < cycle; ++i) {
            ++counts_[by_rest[i]];
        }
        std::vector<std::int64_t> dealt(weights.size());
        for (std::int64_t i = 0; i < cycle; ++i) {
            std::size_t furthest = 0;
            for (std::size_t s = 1; s < weights.size(); ++s) {
                auto const behind = [&](std::size_t source) { return counts_[source] * (i + 1) - dealt[source] * cycle; };
                furthest = behind(s) > behind(furthest) ? s : furthest;
            }
            pattern_.push_back({static_cast<int>(furthest), dealt[furthest]++});
        }
    }

    int sources() const { return static_cast<int>(counts_.size()); }

    /// @param sequence of the training, from 0
    place of(std::int64_t sequence) const
    {
        auto found = pattern_[static_cast<std::size_t>(sequence % cycle)];
        found.number += sequence / cycle * counts_[static_cast<std::size_t>(found.source)];
        return found;
    }

private:
    std::vector<std::int64_t> counts_;  ///< sequences of a source in a cycle
    std::vector<place> pattern_{};
};

}  // namespace rheo::inline v0
