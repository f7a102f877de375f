#pragma once
// SPDX-License-Identifier: Apache-2.0

// The gradient of a weight on a device, in panels: a product in float is written into one buffer and added to the exact sums before the next panel is written
// there, so that it stays in the device's second-level cache. Written whole it would go to memory and come back, 8 bytes a weight.
// How a weight is cut decides which products there are, and so the bits. It follows from the sizes of the weight as it lies, and from nothing else: not
// from the device, its memory, the workspace at hand or the plan.

#include <algorithm>
#include <cstdint>

namespace rheo::inline v0::cuda {

/// Elements of a panel at most, 16 MiB of floats: a third of the second-level cache of an H100 or H200, whose other two thirds the sums and operands pass through.
inline constexpr std::int64_t panel_elements = std::int64_t{4} << 20;

/// Panels begin at multiples of these, the tiles of large products on such a device: none is cut but at the end of the weight, and operands stay as aligned as
/// they were.
inline constexpr std::int64_t panel_row_step = 128;
inline constexpr std::int64_t panel_column_step = 256;
/// Tiles of a panel at most: one for each of its multiprocessors.
inline constexpr std::int64_t panel_tiles = 132;

/// A weight as it lies, cut in panels of one size; the last of a row or column may be smaller.
struct weight_panels {
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t panel_rows;
    std::int64_t panel_columns;

    friend constexpr bool operator==(weight_panels const&, weight_panels const&) = default;
};

/// One of them.
struct weight_panel {
    std::int64_t first_row;
    std::int64_t first_column;
    std::int64_t rows;
    std::int64_t columns;

    friend constexpr bool operator==(weight_panel const&, weight_panel const&) = default;
};

/// The fewest panels; of as many, those that read the fewest elements of the operands, since each row of panels reads one operand once and each column the
/// other; then the widest. Cost: a few operations for each 256 columns.
constexpr weight_panels weight_panels_of(std::int64_t rows, std::int64_t columns)
{
    auto const parts = [](std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; };
    auto const row_steps = std::max<std::int64_t>(1, parts(rows, panel_row_step));
    auto const column_steps = parts(columns, panel_column_step);
    weight_panels best{rows, columns, rows, columns};
    std::int64_t fewest = 0;
    std::int64_t least_read = 0;
    for (std::int64_t across = 1; across <= column_steps; ++across) {
        auto const wide = parts(column_steps, across);
        auto const width = std::min(columns, wide * panel_column_step);
        auto const most = std::min(panel_tiles / wide, rows * width <= panel_elements ? row_steps : panel_elements / width / panel_row_step);
        if (most == 0) {
            continue;
        }
        auto const high = parts(row_steps, parts(row_steps, most));
        auto const in_row = parts(column_steps, wide);
        auto const in_column = parts(row_steps, high);
        auto const read = in_row * rows + in_column * columns;
        if (fewest == 0 || in_row * in_column < fewest || (in_row * in_column == fewest && read < least_read)) {
            fewest = in_row * in_column;
            least_read = read;
            best.panel_rows = std::min(rows, high * panel_row_step);
            best.panel_columns = width;
        }
    }
    return best;
}

/// f(panel) for each, in the order of their first elements.
template <class F>
constexpr void for_panels(weight_panels const& all, F f)
{
    for (std::int64_t row = 0; row < all.rows; row += all.panel_rows) {
        for (std::int64_t column = 0; column < all.columns; column += all.panel_columns) {
            f(weight_panel{row, column, std::min(all.panel_rows, all.rows - row), std::min(all.panel_columns, all.columns - column)});
        }
    }
}

/// Bytes of the buffer that one panel after the other is written into. @param weights of the whole
constexpr std::int64_t panel_bytes(std::int64_t weights) { return std::min(weights, panel_elements) * 4; }

}  // namespace rheo::inline v0::cuda
