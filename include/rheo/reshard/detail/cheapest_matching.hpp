#pragma once
// SPDX-License-Identifier: Apache-2.0

// The Hungarian method by shortest augmenting paths with potentials (Jonker and Volgenant, "A shortest augmenting path algorithm for
// dense and sparse linear assignment problems", Computing 38, 1987): some cheapest matching, and the prices that prove it.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "rheo/reshard/assignment_costs.hpp"

namespace rheo::inline v0::detail {

/// A perfect matching of a square matrix (rows without costs are added) with the potentials that prove it cheapest.
struct matching {
    std::size_t size;
    std::vector<std::size_t> column_of;
    std::vector<std::size_t> row_of;
    std::vector<std::int64_t> row_price;
    std::vector<std::int64_t> column_price;
};

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

}  // namespace rheo::inline v0::detail
