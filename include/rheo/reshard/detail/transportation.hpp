#pragma once
// SPDX-License-Identifier: Apache-2.0

// The transportation problem, exactly: so many places of each kind take so many ranks of each kind at the least total cost. An assignment of
// ten thousand ranks in some hundred classes is one of these. Shortest augmenting paths with potentials (Edmonds and Karp, Journal
// of the ACM 19, 1972; Tomizawa, Networks 1, 1971); the potentials are the dual values that prove the optimum.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0::detail {

struct transportation {
    std::vector<std::int64_t> places;  ///< of each row
    std::vector<std::int64_t> ranks;   ///< of each column, in sum at least as many
    std::vector<std::int64_t> cost;    ///< of one place of a row by one rank of a column, row-major
};

struct transportation_answer {
    std::vector<std::int64_t> taken;  ///< row-major: ranks of a column that take places of a row
    std::int64_t cost = 0;
    std::vector<std::int64_t> row_price;     ///< row + column price <= cost of each pair, and column prices <= 0 ...
    std::vector<std::int64_t> column_price;  ///< ... so that their sum over places and ranks bounds the cost of every answer from below
};

/// The value of the dual problem.
constexpr std::int64_t dual_value(transportation const& problem, transportation_answer const& answer)
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

/// Grows the answer by cheapest paths, one search for each row's places at a time.
template <class OnlyWhenCalled = void>
class transportation_solver {
public:
    constexpr explicit transportation_solver(transportation const& problem)
        : problem_{problem}, rows_{problem.places.size()}, columns_{problem.ranks.size()}, free_{problem.ranks}
    {
        answer_.taken.resize(rows_ * columns_, 0);
        answer_.row_price.resize(rows_, 0);
        answer_.column_price.resize(columns_, 0);
    }

    constexpr transportation_answer solve()
    {
        for (std::size_t r = 0; r < rows_; ++r) {
            auto least = std::numeric_limits<std::int64_t>::max();
            for (std::size_t c = 0; c < columns_; ++c) {
                least = std::min(least, problem_.cost[r * columns_ + c] - answer_.column_price[c]);
            }
            answer_.row_price[r] = least;
            for (auto left = problem_.places[r]; left > 0;) {
                left -= augment(r, left);
            }
        }
        for (std::size_t i = 0; i < answer_.taken.size(); ++i) {
            answer_.cost += answer_.taken[i] * problem_.cost[i];
        }
        return answer_;
    }

private:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);
    static constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();

    constexpr std::int64_t reduced(std::size_t row, std::size_t column) const
    {
        return problem_.cost[row * columns_ + column] - answer_.row_price[row] - answer_.column_price[column];
    }

    /// Along a shortest path from a row to a column with free ranks. @return places that found one
    constexpr std::int64_t augment(std::size_t start, std::int64_t most)
    {
        std::vector<std::int64_t> column_distance(columns_, far);
        std::vector<std::int64_t> row_distance(rows_, far);
        std::vector<std::size_t> row_before(columns_, none);
        std::vector<std::size_t> column_before(rows_, none);
        std::vector<char> done(columns_, 0);
        row_distance[start] = 0;
        std::vector<std::size_t> open{start};
        std::size_t last = none;
        while (last == none) {
            for (auto const r : open) {
                for (std::size_t c = 0; c < columns_; ++c) {
                    if (auto const along = row_distance[r] + reduced(r, c); done[c] == 0 && along < column_distance[c]) {
                        column_distance[c] = along;
                        row_before[c] = r;
                    }
                }
            }
            open.clear();
            std::size_t next = none;
            for (std::size_t c = 0; c < columns_; ++c) {
                if (done[c] == 0 && column_distance[c] != far &&
                    (next == none || column_distance[c] < column_distance[next] ||
                     (column_distance[c] == column_distance[next] && free_[c] > 0 && free_[next] == 0))) {
                    next = c;
                }
            }
            done[next] = 1;
            if (free_[next] > 0) {
                last = next;
                break;
            }
            for (std::size_t r = 0; r < rows_; ++r) {
                if (answer_.taken[r * columns_ + next] > 0 && row_distance[r] == far) {
                    row_distance[r] = column_distance[next];
                    column_before[r] = next;
                    open.push_back(r);
                }
            }
        }
        auto const length = column_distance[last];
        for (std::size_t r = 0; r < rows_; ++r) {
            answer_.row_price[r] += row_distance[r] < length ? length - row_distance[r] : 0;
        }
        for (std::size_t c = 0; c < columns_; ++c) {
            answer_.column_price[c] -= done[c] != 0 && column_distance[c] < length ? length - column_distance[c] : 0;
        }
        return move_along(start, last, most, row_before, column_before);
    }

    constexpr std::int64_t move_along(std::size_t start, std::size_t last, std::int64_t most, std::vector<std::size_t> const& row_before,
                                      std::vector<std::size_t> const& column_before)
    {
        auto moved = std::min(most, free_[last]);
        for (auto c = last; row_before[c] != start;) {
            auto const r = row_before[c];
            c = column_before[r];
            moved = std::min(moved, answer_.taken[r * columns_ + c]);
        }
        free_[last] -= moved;
        for (auto c = last;;) {
            auto const r = row_before[c];
            answer_.taken[r * columns_ + c] += moved;
            if (r == start) {
                return moved;
            }
            c = column_before[r];
            answer_.taken[r * columns_ + c] -= moved;
        }
    }

    transportation const& problem_;
    std::size_t rows_;
    std::size_t columns_;
    std::vector<std::int64_t> free_;
    transportation_answer answer_{};
};

/// The cheapest answer. @pre there are at least as many ranks as places, and a cost for each pair, whose sums stay within 64 bits
template <class OnlyWhenCalled = void>
constexpr transportation_answer cheapest_transportation(transportation const& problem)
{
    std::int64_t surplus = 0;
    for (auto const ranks : problem.ranks) {
        surplus += ranks;
    }
    for (auto const places : problem.places) {
        surplus -= places;
    }
    expects(surplus >= 0, "a transportation problem needs at least as many ranks as places");
    expects(problem.cost.size() == problem.places.size() * problem.ranks.size(), "a transportation problem needs a cost for each row and column");
    return transportation_solver<>{problem}.solve();
}

}  // namespace rheo::inline v0::detail
