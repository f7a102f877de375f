#pragma once
// SPDX-License-Identifier: Apache-2.0

// The linear assignment problem, exactly: give each row a column of its own at the least total cost (detail/cheapest_matching.hpp).
// Among cheapest assignments the lexicographically smallest is returned: the pairs without
// reduced cost are exactly those of the cheapest assignments, so the tie is broken inside their graph.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/reshard/assignment_costs.hpp"
#include "rheo/reshard/detail/cheapest_matching.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

struct assignment {
    std::vector<int> column_of;  ///< row -> column
    std::int64_t cost = 0;

    friend constexpr bool operator==(assignment const&, assignment const&) = default;
};

namespace detail {

/// Exchanges columns along alternating paths of pairs without reduced cost until row after row has the
/// lowest column that a cheapest matching can give it.
template <class OnlyWhenCalled = void>
constexpr void take_lowest_columns(matching& m, assignment_costs const& costs)
{
    auto const n = m.size;
    std::vector<std::size_t> takes(n, 0);  // what a row would take if its column were taken
    std::vector<char> can_move(n, 0);
    std::vector<std::size_t> open;
    auto const free_of_cost = [&](std::size_t row, std::size_t column) { return cost_at(costs, row, column) == m.row_price[row] + m.column_price[column]; };
    for (std::size_t row = 0; row < static_cast<std::size_t>(costs.rows); ++row) {
        auto const mine = m.column_of[row];
        bool lower = false;
        for (std::size_t c = 0; c < mine && !lower; ++c) {
            lower = m.row_of[c] > row && free_of_cost(row, c);
        }
        if (!lower) {
            continue;
        }
        for (std::size_t r = 0; r < n; ++r) {
            can_move[r] = 0;
        }
        open.assign(1, mine);
        while (!open.empty()) {
            auto const column = open.back();
            open.pop_back();
            for (std::size_t r = row + 1; r < n; ++r) {
                if (can_move[r] == 0 && free_of_cost(r, column)) {
                    can_move[r] = 1;
                    takes[r] = column;
                    open.push_back(m.column_of[r]);
                }
            }
        }
        for (std::size_t c = 0; c < mine; ++c) {
            auto owner = m.row_of[c];
            if (owner > row && can_move[owner] != 0 && free_of_cost(row, c)) {
                m.column_of[row] = c;
                m.row_of[c] = row;
                while (true) {
                    auto const column = takes[owner];
                    auto const next = m.row_of[column];
                    m.column_of[owner] = column;
                    m.row_of[column] = owner;
                    if (column == mine) {
                        break;
                    }
                    owner = next;
                }
                break;
            }
        }
    }
}

template <class OnlyWhenCalled = void>
constexpr assignment to_assignment(matching const& m, assignment_costs const& costs)
{
    assignment result;
    for (std::size_t row = 0; row < static_cast<std::size_t>(costs.rows); ++row) {
        result.column_of.push_back(static_cast<int>(m.column_of[row]));
        result.cost += cost_at(costs, row, m.column_of[row]);
    }
    return result;
}

}  // namespace detail

/// The cheapest assignment of rows to columns, ties to the lexicographically smallest list of columns; one of several with similar costs: the
/// prices of columns that the last one left are those to begin with, which changes how long it takes and nothing else.
/// @param column_prices in: one per column, or none; out: those that prove the answer
/// @pre 0 <= rows <= columns, and rows x columns costs are given, none near the limits of its type
/// Cost: O(columns^3), far less when most rows have a column of no cost.
template <class OnlyWhenCalled = void>
constexpr assignment cheapest_assignment(assignment_costs const& costs, std::vector<std::int64_t>& column_prices)
{
    expects(0 <= costs.rows && costs.rows <= costs.columns, "an assignment needs at least as many columns as rows");
    expects(costs.values.size() == static_cast<std::size_t>(costs.rows) * static_cast<std::size_t>(costs.columns),
            "an assignment needs a cost for each row and column");
    expects(column_prices.empty() || column_prices.size() == static_cast<std::size_t>(costs.columns),
            "an assignment begins with a price for each column, or with none");
    auto m = detail::cheapest_matching(costs, std::move(column_prices));
    detail::take_lowest_columns(m, costs);
    column_prices = std::move(m.column_price);
    return detail::to_assignment(m, costs);
}

/// The same, alone. @pre as above
template <class OnlyWhenCalled = void>
constexpr assignment cheapest_assignment(assignment_costs const& costs)
{
    std::vector<std::int64_t> prices;
    return cheapest_assignment(costs, prices);
}

/// What the cheapest assignment costs. @pre as cheapest_assignment
/// Cost: that of reading the matrix where the rows' least costs lie in columns of their own, else that of cheapest_assignment.
template <class OnlyWhenCalled = void>
constexpr std::int64_t cheapest_assignment_cost(assignment_costs const& costs)
{
    auto const columns = static_cast<std::size_t>(costs.columns);
    std::vector<char> taken(columns, 0);
    std::int64_t sum = 0;
    for (std::size_t row = 0; row < static_cast<std::size_t>(costs.rows); ++row) {
        auto best = columns;
        for (std::size_t c = 0; c < columns; ++c) {
            auto const cost = detail::cost_at(costs, row, c);
            auto const least = best == columns ? cost : detail::cost_at(costs, row, best);
            if (best == columns || cost < least || (cost == least && taken[best] != 0)) {
                best = c;
            }
        }
        if (taken[best] != 0) {
            return cheapest_assignment(costs).cost;
        }
        taken[best] = 1;
        sum += detail::cost_at(costs, row, best);
    }
    return sum;
}

}  // namespace rheo::inline v0
