#pragma once
// SPDX-License-Identifier: Apache-2.0

// Set algebra on the boxes of one tensor: all edges of all boxes cut the tensor into a grid whose cells
// are held whole or not at all. What a rank misses is then a set of cells; neighbours with the same
// holders are joined again, so that whole tensors stay one copy.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rheo/reshard/layout.hpp"
#include "rheo/tensor/box.hpp"
#include "rheo/topology/index.hpp"

namespace rheo::inline v0::detail {

/// A box that a rank misses, with everyone who holds all of it (ascending ranks; none: it is lost).
struct missing_box {
    rank_id to;
    tensor_part part;
    std::vector<rank_id> holders;
};

struct box_grid {
    std::vector<std::int64_t> rows;     ///< edges, ascending
    std::vector<std::int64_t> columns;  ///< edges, ascending

    constexpr std::size_t height() const { return rows.empty() ? 0 : rows.size() - 1; }
    constexpr std::size_t width() const { return columns.empty() ? 0 : columns.size() - 1; }
};

constexpr void add_edge(std::vector<std::int64_t>& edges, std::int64_t edge)
{
    std::size_t place = 0;
    while (place < edges.size() && edges[place] < edge) {
        ++place;
    }
    if (place == edges.size() || edges[place] != edge) {
        edges.insert(edges.begin() + static_cast<std::ptrdiff_t>(place), edge);
    }
}

constexpr void add_edges(box_grid& grid, std::span<rank_parts const> layout, tensor_id tensor)
{
    for (auto const& rank : layout) {
        for (auto const& part : rank.parts) {
            if (part.tensor == tensor && elements(part.box) > 0) {
                add_edge(grid.rows, part.box.row_begin);
                add_edge(grid.rows, part.box.row_end);
                add_edge(grid.columns, part.box.column_begin);
                add_edge(grid.columns, part.box.column_end);
            }
        }
    }
}

/// Which cells of the grid the rank has.
constexpr std::vector<char> cells_of(box_grid const& grid, rank_parts const& rank, tensor_id tensor)
{
    std::vector<char> cells(grid.height() * grid.width(), 0);
    for (auto const& part : rank.parts) {
        if (part.tensor != tensor) {
            continue;
        }
        for (std::size_t r = 0; r < grid.height(); ++r) {
            for (std::size_t c = 0; c < grid.width(); ++c) {
                if (part.box.row_begin <= grid.rows[r] && grid.rows[r + 1] <= part.box.row_end &&
                    part.box.column_begin <= grid.columns[c] && grid.columns[c + 1] <= part.box.column_end) {
                    cells[r * grid.width() + c] = 1;
                }
            }
        }
    }
    return cells;
}

/// Appends what each rank misses of one tensor, ascending by rank as `wanted` is.
constexpr void append_missing(std::vector<missing_box>& missing, std::span<rank_parts const> held, std::span<rank_parts const> wanted,
                              tensor_id tensor)
{
    box_grid grid;
    add_edges(grid, held, tensor);
    add_edges(grid, wanted, tensor);
    auto const width = grid.width();
    std::vector<std::vector<char>> has;
    for (auto const& rank : held) {
        has.push_back(cells_of(grid, rank, tensor));
    }
    auto const same_holders = [&](std::size_t a, std::size_t b) {
        for (auto const& cells : has) {
            if (cells[a] != cells[b]) {
                return false;
            }
        }
        return true;
    };
    for (auto const& rank : wanted) {
        auto open = cells_of(grid, rank, tensor);
        for (std::size_t h = 0; h < held.size(); ++h) {
            for (std::size_t cell = 0; held[h].rank == rank.rank && cell < open.size(); ++cell) {
                open[cell] = has[h][cell] != 0 ? 0 : open[cell];
            }
        }
        for (std::size_t first = 0; first < open.size(); ++first) {
            if (open[first] == 0) {
                continue;
            }
            auto const joins = [&](std::size_t cell) { return open[cell] != 0 && same_holders(first, cell); };
            auto const top = first / width;
            auto const left = first % width;
            auto right = left + 1;
            while (right < width && joins(top * width + right)) {
                ++right;
            }
            auto bottom = top + 1;
            for (bool whole_row = true; bottom < grid.height(); ++bottom) {
                for (auto c = left; c < right; ++c) {
                    whole_row = whole_row && joins(bottom * width + c);
                }
                if (!whole_row) {
                    break;
                }
            }
            for (auto r = top; r < bottom; ++r) {
                for (auto c = left; c < right; ++c) {
                    open[r * width + c] = 0;
                }
            }
            missing_box box{rank.rank, {tensor, {grid.rows[top], grid.rows[bottom], grid.columns[left], grid.columns[right]}}, {}};
            for (std::size_t h = 0; h < held.size(); ++h) {
                if (has[h][first] != 0) {
                    box.holders.push_back(held[h].rank);
                }
            }
            missing.push_back(std::move(box));
        }
    }
}

}  // namespace rheo::inline v0::detail
