#pragma once
// SPDX-License-Identifier: Apache-2.0

// The costs of an assignment problem: what each row pays for each column.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rheo::inline v0 {

/// A dense matrix of costs.
struct assignment_costs {
    int rows;
    int columns;
    std::vector<std::int64_t> values;  ///< row-major

    friend constexpr bool operator==(assignment_costs const&, assignment_costs const&) = default;
};

namespace detail {

/// Rows behind the last cost nothing.
constexpr std::int64_t cost_at(assignment_costs const& costs, std::size_t row, std::size_t column)
{
    auto const columns = static_cast<std::size_t>(costs.columns);
    return row < static_cast<std::size_t>(costs.rows) ? costs.values[row * columns + column] : 0;
}

}  // namespace detail

}  // namespace rheo::inline v0
