#pragma once
// SPDX-License-Identifier: Apache-2.0

// Who takes the places of the target layout, in classes of equal ranks, and what a rank of one class misses in a place of another.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/reshard/detail/meeting_boxes.hpp"
#include "rheo/reshard/detail/reshard_problem.hpp"
#include "rheo/reshard/reshard_fault.hpp"
#include "rheo/reshard/reshard_plan.hpp"

namespace rheo::inline v0::detail {

/// A rank and its class.
struct ranked_class {
    rank_id rank;
    std::size_t of;

    friend constexpr bool operator==(ranked_class, ranked_class) = default;
    friend constexpr auto operator<=>(ranked_class, ranked_class) = default;
};

template <class OnlyWhenCalled = void>
constexpr std::vector<ranked_class> by_rank(std::vector<rank_class> const& classes)
{
    std::vector<ranked_class> all;
    for (std::size_t c = 0; c < classes.size(); ++c) {
        for (auto const rank : classes[c].ranks) {
            all.push_back({rank, c});
        }
    }
    std::sort(all.begin(), all.end());
    return all;
}

/// A place of the target layout, the rank that takes it, and their classes.
struct taken_class {
    ranked_class place;
    ranked_class rank;
};

/// Bytes that a class has in common with a place.
struct sized_class {
    std::size_t of;
    std::int64_t bytes;

    friend constexpr bool operator==(sized_class, sized_class) = default;
    friend constexpr auto operator<=>(sized_class, sized_class) = default;
};

struct chosen_ranks {
    std::vector<taken_class> taken{};  ///< ascending by place
    std::int64_t least_needed = -1;    ///< dual value of the assignment; -1: pinned
    reshard_fault fault{};
};

/// Bytes that a rank of one class misses in a place of another: what the place needs less what they have in common. An element that is a sum
/// needs all of its addends.
template <class OnlyWhenCalled = void>
class missing_bytes {
public:
    constexpr explicit missing_bytes(reshard_problem const& problem) : problem_{problem}, sum_(problem.held.size(), 0)
    {
        for (auto const& array : problem.arrays) {
            meeting_.emplace_back(array.wanted, array.held);
        }
    }

    constexpr std::int64_t needed(std::size_t wants)
    {
        std::int64_t sum = 0;
        for (auto const ref : problem_.wanted[wants].boxes) {
            auto const& array = problem_.arrays[ref.array];
            if (!array.is_sum) {
                sum += elements(array.wanted[ref.box]) * array.unit;
                continue;
            }
            for (auto const b : meeting_[ref.array][ref.box]) {
                for (auto const c : array.holders[b]) {
                    sum += common(array, ref.box, b) * static_cast<std::int64_t>(problem_.held[c].ranks.size());
                }
            }
        }
        return sum;
    }

    /// The classes that have something in common with a place, each once, ascending, with the bytes.
    constexpr std::vector<sized_class> shared(std::size_t wants)
    {
        std::vector<sized_class> all;
        for (auto const ref : problem_.wanted[wants].boxes) {
            auto const& array = problem_.arrays[ref.array];
            for (auto const b : meeting_[ref.array][ref.box]) {
                auto const size = common(array, ref.box, b);
                for (auto const c : array.holders[b]) {
                    if (sum_[c] == 0) {
                        all.push_back({c, 0});
                    }
                    sum_[c] += size;
                }
            }
        }
        std::sort(all.begin(), all.end());
        for (auto& one : all) {
            one.bytes = std::exchange(sum_[one.of], 0);
        }
        return all;
    }

private:
    constexpr std::int64_t common(moving_array const& array, std::size_t wanted, std::size_t held) const
    {
        return elements(intersection(array.wanted[wanted], array.held[held])) * array.unit;
    }

    reshard_problem const& problem_;
    std::vector<meeting_boxes<OnlyWhenCalled>> meeting_{};  ///< by array
    std::vector<std::int64_t> sum_;                         ///< by class, 0 between calls
};

/// So many places of a class take ranks of another.
struct taken_amount {
    std::size_t row;
    std::size_t column;
    std::int64_t amount;
};

/// Deals the ranks of each class to places of each class; a rank stays at its own place where it can. Places that are left take any ranks that are left.
template <class OnlyWhenCalled = void>
class place_dealer {
public:
    /// @param places by row, ascending; @param ranks by column, ascending
    constexpr place_dealer(std::vector<std::vector<ranked_class>> places, std::vector<std::vector<ranked_class>> ranks, std::vector<taken_class>& taken)
        : places_{std::move(places)}, ranks_{std::move(ranks)}, taken_{taken}
    {
    }

    constexpr void deal(std::vector<taken_amount> amounts)
    {
        for (auto& one : amounts) {
            deal_own(places_[one.row], ranks_[one.column], one.amount);
        }
        compact();
        std::vector<std::size_t> next_place(places_.size(), 0);
        std::vector<std::size_t> next_rank(ranks_.size(), 0);
        for (auto& one : amounts) {
            for (; one.amount > 0; --one.amount) {
                take(places_[one.row][next_place[one.row]++], ranks_[one.column][next_rank[one.column]++]);
            }
        }
        compact();
        auto places = gathered(places_);
        auto ranks = gathered(ranks_);
        auto all = static_cast<std::int64_t>(places.size());
        deal_own(places, ranks, all);
        std::size_t rank = 0;
        for (auto& place : places) {
            while (place.rank.value >= 0 && ranks[rank].rank.value < 0) {
                ++rank;
            }
            if (place.rank.value >= 0) {
                take(place, ranks[rank]);
            }
        }
    }

private:
    constexpr void take(ranked_class& place, ranked_class& rank)
    {
        taken_.push_back({place, rank});
        place.rank = rank_id{-1};
        rank.rank = rank_id{-1};
    }

    /// Ranks that are in both lists, up to an amount. @pre what is left of each ascends; what is taken is below all
    constexpr void deal_own(std::vector<ranked_class>& places, std::vector<ranked_class>& ranks, std::int64_t& amount)
    {
        std::size_t r = 0;
        for (auto& place : places) {
            while (r < ranks.size() && ranks[r].rank < place.rank) {
                ++r;
            }
            if (amount > 0 && place.rank.value >= 0 && r < ranks.size() && ranks[r].rank == place.rank) {
                take(place, ranks[r]);
                --amount;
            }
        }
    }

    constexpr void compact()
    {
        for (auto* all : {&places_, &ranks_}) {
            for (auto& one : *all) {
                one.erase(std::remove_if(one.begin(), one.end(), [](ranked_class const& member) { return member.rank.value < 0; }), one.end());
            }
        }
    }

    static constexpr std::vector<ranked_class> gathered(std::vector<std::vector<ranked_class>> const& of)
    {
        std::vector<ranked_class> all;
        for (auto const& one : of) {
            all.insert(all.end(), one.begin(), one.end());
        }
        std::sort(all.begin(), all.end());
        return all;
    }

    std::vector<std::vector<ranked_class>> places_;
    std::vector<std::vector<ranked_class>> ranks_;
    std::vector<taken_class>& taken_;
};

/// The places or ranks of each class.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<ranked_class>> members_of(std::vector<rank_class> const& classes)
{
    std::vector<std::vector<ranked_class>> members;
    for (std::size_t c = 0; c < classes.size(); ++c) {
        members.emplace_back();
        for (auto const rank : classes[c].ranks) {
            members.back().push_back({rank, c});
        }
    }
    return members;
}

}  // namespace rheo::inline v0::detail
