#pragma once
// SPDX-License-Identifier: Apache-2.0

// Who takes the places of the target layout, in classes of equal ranks, and what a rank of one class misses in a place of another.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/reshard/detail/reshard_problem.hpp"
#include "rheo/reshard/detail/transportation.hpp"
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

struct chosen_ranks {
    std::vector<taken_class> taken{};  ///< ascending by place
    std::int64_t least_needed = -1;    ///< dual value of the assignment; -1: pinned
    reshard_fault fault{};
};

/// Bytes that a rank of one class misses in a place of another.
class missing_bytes {
public:
    constexpr explicit missing_bytes(reshard_problem const& problem) : problem_{problem} {}

    constexpr std::int64_t wanted(std::size_t wants) const
    {
        std::int64_t sum = 0;
        for (auto const ref : problem_.wanted[wants].boxes) {
            sum += elements(problem_.arrays[ref.array].wanted[ref.box]) * problem_.arrays[ref.array].unit;
        }
        return sum;
    }

    constexpr std::int64_t held(std::size_t holds) const
    {
        std::int64_t sum = 0;
        for (auto const ref : problem_.held[holds].boxes) {
            sum += elements(problem_.arrays[ref.array].held[ref.box]) * problem_.arrays[ref.array].unit;
        }
        return sum;
    }

    constexpr std::int64_t common(std::size_t wants, std::size_t holds) const
    {
        std::int64_t sum = 0;
        auto const& own = problem_.held[holds].boxes;
        std::size_t first = 0;
        for (auto const want : problem_.wanted[wants].boxes) {
            auto const& array = problem_.arrays[want.array];
            while (first < own.size() && own[first].array < want.array) {
                ++first;
            }
            for (auto i = first; i < own.size() && own[i].array == want.array; ++i) {
                if (intersects(array.wanted[want.box], array.held[own[i].box])) {
                    sum += elements(intersection(array.wanted[want.box], array.held[own[i].box])) * array.unit;
                }
            }
        }
        return sum;
    }

private:
    reshard_problem const& problem_;
};

/// Deals the ranks of each class to places of each class as the answer says; a rank stays at its own place where it can.
/// @param places by row, ascending; @param ranks by column, ascending
template <class OnlyWhenCalled = void>
constexpr void deal_places(transportation_answer const& answer, std::vector<std::vector<ranked_class>> places, std::vector<std::vector<ranked_class>> ranks,
                           std::vector<taken_class>& taken)
{
    auto left = answer.taken;
    for (int pass = 0; pass < 2; ++pass) {
        for (std::size_t r = 0; r < places.size(); ++r) {
            for (std::size_t c = 0; c < ranks.size(); ++c) {
                auto& amount = left[r * ranks.size() + c];
                std::vector<ranked_class> other_places;
                for (auto const& place : places[r]) {
                    auto const same = [&](ranked_class const& rank) { return rank.rank.value >= 0 && (pass == 1 || rank.rank == place.rank); };
                    auto const found = amount > 0 ? std::find_if(ranks[c].begin(), ranks[c].end(), same) : ranks[c].end();
                    if (found == ranks[c].end()) {
                        other_places.push_back(place);
                    } else {
                        taken.push_back({place, *found});
                        found->rank = rank_id{-1};
                        --amount;
                    }
                }
                if (other_places.size() != places[r].size()) {
                    places[r] = other_places;
                    ranks[c].erase(std::remove_if(ranks[c].begin(), ranks[c].end(), [](ranked_class const& one) { return one.rank.value < 0; }),
                                   ranks[c].end());
                }
            }
        }
    }
}

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
