#pragma once
// SPDX-License-Identifier: Apache-2.0

// A panel of a gradient enters exact sums: some rows of the tensor, and of these some columns. As the whole gradient would, since sums of integers, largest
// sizes and flags depend on no order.

#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "kernels/exact/exact.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// Adds a panel of the gradient of one contribution.
template <dtype Accumulate>
struct exact_panel_arguments {
    std::int64_t rows;
    std::int64_t columns;
    float const* gradient;               // [rows, columns]
    gradient_sum_of<Accumulate> target;  // [rows, columns] of a tensor [.., width]: from the first sum of the panel, and the first state of its rows
    std::int64_t width;                  ///< sums from row to row
};

namespace detail {

constexpr void expect_panel(exact_panel_arguments<dtype::i64> const& a) { expects(a.columns <= a.width, "a panel is no wider than its tensor"); }
constexpr void expect_panel(exact_panel_arguments<dtype::i32> const& a)
{
    expects(a.columns <= a.width, "a panel is no wider than its tensor");
    expects(a.target.width == a.width, "rows of sums in 32 bits are as wide as their tensor");
}

}  // namespace detail

namespace definition {

template <dtype Accumulate>
void exact_accumulate_panel(exact_panel_arguments<Accumulate> const& a)
{
    rheo::detail::expect_panel(a);
    for (std::int64_t r = 0; r < a.rows; ++r) {
        for (std::int64_t c = 0; c < a.columns; ++c) {
            contribute(a.target, r * a.width + c, a.gradient[r * a.columns + c]);
        }
    }
}

}  // namespace definition

namespace cuda {

// Pointers are the device's, and sums are there when the stream is. Of sums in 32 bits the states of the rows are joined, of those in 64 bits the tensor's.
void exact_accumulate_panel(stream queue, exact_panel_arguments<dtype::i64> const& arguments);
void exact_accumulate_panel(stream queue, exact_panel_arguments<dtype::i32> const& arguments);

}  // namespace cuda
}  // namespace rheo::inline v0
