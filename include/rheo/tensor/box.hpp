#pragma once
// SPDX-License-Identifier: Apache-2.0

// An index box: the part of a tensor with rows and columns in half-open ranges. Layouts are maps from
// ranks to boxes and resharding is set algebra on them (Tenplex, SOSP'24, section 4).

#include <algorithm>
#include <cstdint>

#include "rheo/tensor/shape.hpp"

namespace rheo::inline v0 {

struct index_box {
    std::int64_t row_begin = 0;
    std::int64_t row_end = 0;
    std::int64_t column_begin = 0;
    std::int64_t column_end = 0;

    friend constexpr bool operator==(index_box const&, index_box const&) = default;
};

constexpr index_box whole(tensor_shape shape) { return {0, shape.rows, 0, shape.columns}; }

constexpr std::int64_t elements(index_box const& box)
{
    auto const rows = box.row_end - box.row_begin;
    auto const columns = box.column_end - box.column_begin;
    return rows <= 0 || columns <= 0 ? 0 : rows * columns;
}

constexpr index_box intersection(index_box const& a, index_box const& b)
{
    return {std::max(a.row_begin, b.row_begin), std::min(a.row_end, b.row_end), std::max(a.column_begin, b.column_begin), std::min(a.column_end, b.column_end)};
}

}  // namespace rheo::inline v0
