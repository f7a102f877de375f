#pragma once
// SPDX-License-Identifier: Apache-2.0

// Places take ranks so that the sum of what they share is largest, exactly, where most pairs share nothing: only pairs that do are listed. Each kind of
// place has so many places, each kind of rank so many ranks; a place may stay without a rank. Shortest augmenting paths with prices (Edmonds and
// Karp, Journal of the ACM 19, 1972), here over listed pairs only, with a heap; the prices are the dual values that prove the optimum.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rheo::inline v0::detail {

/// A kind of place and a kind of rank that share something.
struct weighted_pair {
    std::size_t row;
    std::size_t column;
    std::int64_t weight;  ///< > 0, of one place and one rank
};

struct heaviest_problem {
    std::vector<std::int64_t> places;    ///< of each row
    std::vector<std::int64_t> ranks;     ///< of each column
    std::vector<weighted_pair> pairs{};  ///< ascending by row, each pair once
};

struct heaviest_answer {
    std::vector<std::int64_t> taken;         ///< by pair: places of its row that take ranks of its column
    std::vector<std::int64_t> row_price;     ///< >= 0; row + column price >= weight of each pair ...
    std::vector<std::int64_t> column_price;  ///< >= 0; ... so that their sum over places and ranks bounds the weight of every answer from above
};

constexpr std::int64_t weight_of(heaviest_problem const& problem, heaviest_answer const& answer)
{
    std::int64_t sum = 0;
    for (std::size_t p = 0; p < problem.pairs.size(); ++p) {
        sum += answer.taken[p] * problem.pairs[p].weight;
    }
    return sum;
}

/// The value of the dual problem.
constexpr std::int64_t dual_value(heaviest_problem const& problem, heaviest_answer const& answer)
{
    std::int64_t sum = 0;
    for (std::size_t r = 0; r < problem.places.size(); ++r) {
        sum += problem.places[r] * answer.row_price[r];
    }
    for (std::size_t c = 0; c < problem.ranks.size(); ++c) {
        sum += problem.ranks[c] * answer.column_price[c];
    }
    return sum;
}

/// One search for each row's places at a time.
template <class OnlyWhenCalled = void>
class heaviest_solver {
public:
    constexpr explicit heaviest_solver(heaviest_problem const& problem)
        : problem_{problem},
          first_(problem.places.size() + 1, 0),
          into_(problem.ranks.size()),
          free_{problem.ranks},
          row_distance_(problem.places.size(), far),
          column_distance_(problem.ranks.size(), far),
          pair_to_row_(problem.places.size(), none),
          pair_to_column_(problem.ranks.size(), none)
    {
        answer_.taken.resize(problem.pairs.size(), 0);
        answer_.row_price.resize(problem.places.size(), 0);
        answer_.column_price.resize(problem.ranks.size(), 0);
        for (std::size_t p = 0; p < problem.pairs.size(); ++p) {
            ++first_[problem.pairs[p].row + 1];
            into_[problem.pairs[p].column].push_back(p);
        }
        for (std::size_t r = 1; r < first_.size(); ++r) {
            first_[r] += first_[r - 1];
        }
    }

    constexpr heaviest_answer solve()
    {
        for (std::size_t r = 0; r < problem_.places.size(); ++r) {
            for (auto p = first_[r]; p < first_[r + 1]; ++p) {
                answer_.row_price[r] = std::max(answer_.row_price[r], problem_.pairs[p].weight - answer_.column_price[problem_.pairs[p].column]);
            }
            for (auto left = problem_.places[r]; left > 0;) {
                left -= augment(r, left);
            }
        }
        return answer_;
    }

private:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);
    static constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();

    /// A column at a distance from the start; the nearest is on top, one with free ranks before others.
    struct seen_column {
        std::int64_t distance;
        bool is_full;
        std::size_t column;

        friend constexpr bool operator<(seen_column const& a, seen_column const& b)
        {
            return a.distance != b.distance ? a.distance > b.distance : a.is_full != b.is_full ? a.is_full : a.column > b.column;
        }
    };

    /// Where a path ends: at a column with free ranks, or at a row of which a place stays without a rank.
    struct path_end {
        std::int64_t distance;
        std::size_t column = none;
        std::size_t row = none;
    };

    /// @return places of the row that are settled
    constexpr std::int64_t augment(std::size_t start, std::int64_t most)
    {
        auto const end = search(start);
        for (auto const r : rows_) {
            answer_.row_price[r] -= row_distance_[r] < end.distance ? end.distance - row_distance_[r] : 0;
        }
        for (auto const c : columns_) {
            answer_.column_price[c] += column_distance_[c] < end.distance ? end.distance - column_distance_[c] : 0;
        }
        auto const moved = move_along(start, end, most);
        for (auto const r : rows_) {
            row_distance_[r] = far;
        }
        for (auto const c : columns_) {
            column_distance_[c] = far;
        }
        return moved;
    }

    /// Dijkstra over rows and columns. A pair's length is what its prices exceed its weight by; back along a taken pair it is 0.
    constexpr path_end search(std::size_t start)
    {
        rows_.clear();
        columns_.clear();
        heap_.clear();
        path_end best{far};
        auto const visit_row = [&](std::size_t r, std::int64_t distance, std::size_t pair) {
            row_distance_[r] = distance;
            pair_to_row_[r] = pair;
            rows_.push_back(r);
            if (distance + answer_.row_price[r] < best.distance) {
                best = {distance + answer_.row_price[r], none, r};
            }
            for (auto p = first_[r]; p < first_[r + 1]; ++p) {
                auto const& pair_of = problem_.pairs[p];
                auto const along = distance + answer_.row_price[r] + answer_.column_price[pair_of.column] - pair_of.weight;
                if (along < column_distance_[pair_of.column] && along <= best.distance) {
                    if (column_distance_[pair_of.column] == far) {
                        columns_.push_back(pair_of.column);
                    }
                    column_distance_[pair_of.column] = along;
                    pair_to_column_[pair_of.column] = p;
                    heap_.push_back({along, free_[pair_of.column] == 0, pair_of.column});
                    std::push_heap(heap_.begin(), heap_.end());
                }
            }
        };
        visit_row(start, 0, none);
        while (!heap_.empty()) {
            auto const top = heap_.front();
            std::pop_heap(heap_.begin(), heap_.end());
            heap_.pop_back();
            if (top.distance > best.distance || (top.distance == best.distance && top.is_full)) {
                break;
            }
            if (!top.is_full) {
                return {top.distance, top.column, none};
            }
            if (top.distance > column_distance_[top.column]) {
                continue;
            }
            for (auto const p : into_[top.column]) {
                if (answer_.taken[p] > 0 && row_distance_[problem_.pairs[p].row] == far) {
                    visit_row(problem_.pairs[p].row, top.distance, p);
                }
            }
        }
        return best;
    }

    constexpr std::int64_t move_along(std::size_t start, path_end const& end, std::int64_t most)
    {
        // Pairs from the end to the start: forward ones get places, those back along taken pairs give them up.
        auto moved = end.column == none ? most : std::min(most, free_[end.column]);
        std::vector<std::size_t> forward;
        std::vector<std::size_t> back;
        for (auto row = end.row, column = end.column; row != start;) {
            if (column != none) {
                forward.push_back(pair_to_column_[column]);
                row = problem_.pairs[forward.back()].row;
                column = none;
            } else {
                back.push_back(pair_to_row_[row]);
                column = problem_.pairs[back.back()].column;
                moved = std::min(moved, answer_.taken[back.back()]);
            }
        }
        for (auto const p : forward) {
            answer_.taken[p] += moved;
        }
        for (auto const p : back) {
            answer_.taken[p] -= moved;
        }
        if (end.column != none) {
            free_[end.column] -= moved;
        }
        return moved;
    }

    heaviest_problem const& problem_;
    std::vector<std::size_t> first_;              ///< pair of each row
    std::vector<std::vector<std::size_t>> into_;  ///< column -> its pairs
    std::vector<std::int64_t> free_;
    std::vector<std::int64_t> row_distance_;
    std::vector<std::int64_t> column_distance_;
    std::vector<std::size_t> pair_to_row_;
    std::vector<std::size_t> pair_to_column_;
    std::vector<std::size_t> rows_{};  ///< seen in the present search
    std::vector<std::size_t> columns_{};
    std::vector<seen_column> heap_{};
    heaviest_answer answer_{};
};

/// @pre pairs ascend by row, each once, their weights are positive, and all sums stay within 64 bits
template <class OnlyWhenCalled = void>
constexpr heaviest_answer heaviest_assignment(heaviest_problem const& problem)
{
    return heaviest_solver<>{problem}.solve();
}

}  // namespace rheo::inline v0::detail
