#pragma once
// SPDX-License-Identifier: Apache-2.0

// Who is slow. Every step all ranks learn how many times as long as by the profile each rank's computations took; a profile
// that is wrong for all alike marks no straggler, so what counts is the ratio to the median. A rank is slow when it has been so for
// some steps one after the other, and is not any more when it has been well for as many: clocks are not to change back and forth.
// A value that follows from the numbers alone, so it is the same on every rank that has seen the same steps.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// A rank whose computations take `factor` times as long as was measured.
struct slow_rank {
    rank_id rank;
    double factor = 1.0;

    friend constexpr bool operator==(slow_rank, slow_rank) = default;
};

struct straggler_rule {
    double threshold = 1.10;  ///< from this ratio on
    double recovered = 1.05;  ///< below it a slow rank is normal again
    double change = 0.05;     ///< a slow rank's ratio that differs by this part is another one
    int steps = 2;            ///< one after the other

    friend constexpr bool operator==(straggler_rule, straggler_rule) = default;
};

/// What is known of the ranks, those that are slow with their factors in force.
struct stragglers {
    struct seen {
        rank_id rank;
        double factor = 1.0;  ///< in force; 1: it is well
        int steps = 0;        ///< in which it was otherwise

        friend constexpr bool operator==(seen, seen) = default;
    };
    std::vector<seen> ranks;

    friend constexpr bool operator==(stragglers const&, stragglers const&) = default;
};

/// Those that are slow, in their order.
template <class OnlyWhenCalled = void>
constexpr std::vector<slow_rank> slow_ranks(stragglers const& all)
{
    std::vector<slow_rank> slow;
    for (auto const& s : all.ranks) {
        if (s.factor != 1.0) {
            slow.push_back({s.rank, s.factor});
        }
    }
    return slow;
}

/// Takes note of a step. Ranks that are gone are forgotten. @param slowness of each of the ranks: how many times as long it took as by the
/// profile; 0: not known, and nothing changes @pre as many as there are ranks
/// @return whether any rank's factor in force has changed
template <class OnlyWhenCalled = void>
constexpr bool observe(stragglers& all, array_view<rank_id const> ranks, array_view<double const> slowness, straggler_rule rule = {})
{
    expects(ranks.size() == slowness.size(), "every rank reports how slow it was");
    std::vector<double> known;
    for (auto const s : slowness) {
        if (s > 0.0) {
            known.insert(std::upper_bound(known.begin(), known.end(), s), s);
        }
    }
    stragglers next;
    bool changed = false;
    for (std::size_t k = 0; k < ranks.size(); ++k) {
        auto& here = next.ranks.emplace_back(stragglers::seen{ranks[k], 1.0, 0});
        for (auto const& before : all.ranks) {
            here = before.rank == ranks[k] ? before : here;
        }
        if (slowness[k] <= 0.0) {
            continue;
        }
        auto const hundredths = static_cast<int>(100.0 * slowness[k] / known[(known.size() - 1) / 2] + 0.5);  // the lower median: two ranks, one slow
        auto const ratio = hundredths / 100.0;
        bool const recovered = ratio < (here.factor == 1.0 ? rule.threshold : rule.recovered);
        auto const off = ratio / here.factor - 1.0;
        bool const otherwise = here.factor == 1.0 ? !recovered : recovered || off > rule.change || off < -rule.change;
        here.steps = otherwise ? here.steps + 1 : 0;
        if (here.steps >= rule.steps) {
            here.steps = 0;
            here.factor = recovered ? 1.0 : ratio;
            changed = true;
        }
    }
    for (auto const& before : all.ranks) {  // a slow rank that is gone is not waited for any more
        changed = changed || (before.factor != 1.0 && std::find(ranks.begin(), ranks.end(), before.rank) == ranks.end());
    }
    all = std::move(next);
    return changed;
}

}  // namespace rheo::inline v0
