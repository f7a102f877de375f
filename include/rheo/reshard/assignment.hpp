#pragma once
// SPDX-License-Identifier: Apache-2.0

// The linear assignment problem, exactly: give each row a column of its own at the least total cost. The
// method is the Hungarian one by shortest augmenting paths with potentials (Jonker and Volgenant, "A
// shortest augmenting path algorithm for dense and sparse linear assignment problems", Computing 38, 1987).
// Among cheapest assignments the lexicographically smallest is returned: the pairs without
// reduced cost are exactly those of the cheapest assignments, so the tie is broken inside their graph.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

struct assignment {
    std::vector<int> column_of;  ///< row -> column
    std::int64_t cost = 0;

    friend constexpr bool operator==(assignment const&, assignment const&) = default;
};

/// A dense matrix of costs.
struct assignment_costs {
    int rows;
    int columns;
    std::vector<std::int64_t> values;  ///< row-major

    friend constexpr bool operator==(assignment_costs const&, assignment_costs const&) = default;
};

namespace detail {

/// A perfect matching of a square matrix (rows without costs are added) with the potentials that prove it cheapest.
struct matching {
    std::size_t size;
    std::vector<std::size_t> column_of;
    std::vector<std::size_t> row_of;
    std::vector<std::int64_t> row_price;
    std::vector<std::int64_t> column_price;
};

constexpr std::int64_t cost_at(assignment_costs const& costs, std::size_t row, std::size_t column)
{
    auto const columns = static_cast<std::size_t>(costs.columns);
    return row < static_cast<std::size_t>(costs.rows) ? costs.values[row * columns + column] : 0;
}

/// The cheapest column of a row at the columns' prices, a free one if there is one among equals, and by how much it is cheaper than any other.
struct cheapest_column {
    std::size_t column;
    std::int64_t lead;
};

constexpr cheapest_column cheapest_of(matching const& m, assignment_costs const& costs, std::size_t row)
{
    constexpr auto far = std::numeric_limits<std::int64_t>::max();
    bool const is_real = row < static_cast<std::size_t>(costs.rows);
    auto const values = is_real ? row * m.size : 0;
    cheapest_column found{m.size, 0};
    auto least = far;
    auto second = far;
    for (std::size_t c = 0; c < m.size; ++c) {
        auto const reduced = (is_real ? costs.values[values + c] : 0) - m.column_price[c];
        if (reduced < least || (reduced == least && m.row_of[c] == m.size && m.row_of[found.column] != m.size)) {
            second = least;
            least = reduced;
            found.column = c;
        } else if (reduced < second) {
            second = reduced;
        }
    }
    found.lead = second == far ? 0 : second - least;
    return found;
}

/// Most rows of most matrices: a row takes its cheapest column, also from another row that then looks for another one, and lowers
/// the column's price until it would as soon take its second cheapest (the "augmenting row reduction"). What is matched stays proved cheapest.
/// @return the rows that found no column
template <class OnlyWhenCalled = void>
constexpr std::vector<std::size_t> match_by_bids(matching& m, assignment_costs const& costs)
{
    auto const none = m.size;
    std::vector<std::size_t> open;
    for (std::size_t row = m.size; row-- > 0;) {
        open.push_back(row);
    }
    std::vector<std::size_t> left;
    for (auto bids = 3 * m.size; !open.empty();) {
        auto const row = open.back();
        open.pop_back();
        auto const found = cheapest_of(m, costs, row);
        auto const owner = m.row_of[found.column];
        if (owner != none && (found.lead == 0 || bids == 0)) {
            left.push_back(row);
            continue;
        }
        m.column_price[found.column] -= found.lead;
        m.row_of[found.column] = row;
        if (owner != none) {
            --bids;
            open.push_back(owner);
        }
    }
    for (std::size_t c = 0; c < m.size; ++c) {
        if (auto const row = m.row_of[c]; row != none) {
            m.row_price[row] = cost_at(costs, row, c) - m.column_price[c];
        }
    }
    return left;
}

/// Gives `start` a column along the cheapest alternating path.
constexpr void match_by_path(matching& m, assignment_costs const& costs, std::size_t start, std::vector<std::int64_t>& distance,
                             std::vector<std::size_t>& previous, std::vector<char>& reached)
{
    auto const n = m.size;
    auto const none = n;
    constexpr auto far = std::numeric_limits<std::int64_t>::max();
    for (std::size_t c = 0; c < n; ++c) {
        distance[c] = far;  // from the row that begins, over pairs at their reduced costs
        reached[c] = 0;
    }
    auto column = none;  // stands for the beginning of the path
    auto row = start;
    std::int64_t so_far = 0;
    while (true) {
        bool const is_real = row < static_cast<std::size_t>(costs.rows);
        auto const values = is_real ? row * n : 0;
        auto const price = so_far - m.row_price[row];
        auto nearest = far;
        auto next = none;
        for (std::size_t c = 0; c < n; ++c) {
            if (reached[c] != 0) {
                continue;
            }
            auto const along = price + (is_real ? costs.values[values + c] : 0) - m.column_price[c];
            if (along < distance[c]) {
                distance[c] = along;
                previous[c] = column;
            }
            if (distance[c] < nearest) {
                nearest = distance[c];
                next = c;
            }
        }
        so_far = nearest;
        column = next;
        if (m.row_of[column] == none) {
            break;
        }
        reached[column] = 1;
        row = m.row_of[column];
    }
    m.row_price[start] += so_far;
    for (std::size_t c = 0; c < n; ++c) {
        if (reached[c] != 0) {
            m.row_price[m.row_of[c]] += so_far - distance[c];
            m.column_price[c] -= so_far - distance[c];
        }
    }
    while (column != none) {
        auto const before = previous[column];
        m.row_of[column] = before == none ? start : m.row_of[before];
        column = before;
    }
}

/// @param column_prices to begin with, one per column or none
template <class OnlyWhenCalled = void>
constexpr matching cheapest_matching(assignment_costs const& costs, std::vector<std::int64_t> column_prices = {})
{
    auto const n = static_cast<std::size_t>(costs.columns);
    column_prices.resize(n, 0);
    matching m{n, std::vector<std::size_t>(n, n), std::vector<std::size_t>(n, n), std::vector<std::int64_t>(n, 0), std::move(column_prices)};
    std::vector<std::int64_t> distance(n, 0);
    std::vector<std::size_t> previous(n, 0);
    std::vector<char> reached(n, 0);
    for (auto const row : match_by_bids(m, costs)) {
        match_by_path(m, costs, row, distance, previous, reached);
    }
    for (std::size_t c = 0; c < n; ++c) {
        m.column_of[m.row_of[c]] = c;
    }
    return m;
}

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
