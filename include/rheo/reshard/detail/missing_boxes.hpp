#pragma once
// SPDX-License-Identifier: Apache-2.0

// Set algebra on the boxes of one tensor: all edges of all boxes cut the tensor into a grid whose cells
// are held whole or not at all. What a rank misses is then a set of cells; neighbours with the same
// holders are joined again, so that whole tensors stay one copy. Boxes come sorted by tensor: most ranks
// keep most of what they have, and a tensor that no rank misses must cost next to nothing.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/reshard/layout.hpp"
#include "rheo/tensor/box.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0::detail {

/// A box that a rank misses, with everyone who holds all of it (ascending ranks; none: it is lost).
struct missing_box {
    rank_id to;
    tensor_part part;
    std::vector<rank_id> holders;
};

/// A box of the tensor at hand with the rank that holds or wants it.
struct placed_box {
    rank_id rank;
    index_box box;
};

struct box_grid {
    std::vector<std::int64_t> rows;     ///< edges, ascending
    std::vector<std::int64_t> columns;  ///< edges, ascending

    constexpr std::size_t height() const { return rows.empty() ? 0 : rows.size() - 1; }
    constexpr std::size_t width() const { return columns.empty() ? 0 : columns.size() - 1; }
};

template <class OnlyWhenCalled = void>
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

template <class OnlyWhenCalled = void>
constexpr void add_edges(box_grid& grid, array_view<placed_box const> boxes)
{
    for (auto const& [rank, box] : boxes) {
        if (elements(box) > 0) {
            add_edge(grid.rows, box.row_begin);
            add_edge(grid.rows, box.row_end);
            add_edge(grid.columns, box.column_begin);
            add_edge(grid.columns, box.column_end);
        }
    }
}

constexpr bool covers_cell(index_box const& box, box_grid const& grid, std::size_t row, std::size_t column)
{
    return box.row_begin <= grid.rows[row] && grid.rows[row + 1] <= box.row_end && box.column_begin <= grid.columns[column] &&
           grid.columns[column + 1] <= box.column_end;
}

/// Cells of the grid, marked by rank.
struct rank_cells {
    rank_id rank;
    std::vector<char> cells;
};

/// @pre boxes ascend by rank
template <class OnlyWhenCalled = void>
constexpr std::vector<rank_cells> cells_by_rank(box_grid const& grid, array_view<placed_box const> boxes)
{
    std::vector<rank_cells> result;
    for (auto const& [rank, box] : boxes) {
        if (result.empty() || result.back().rank != rank) {
            result.push_back({rank, std::vector<char>(grid.height() * grid.width(), 0)});
        }
        for (std::size_t r = 0; r < grid.height(); ++r) {
            for (std::size_t c = 0; c < grid.width(); ++c) {
                auto& cell = result.back().cells[r * grid.width() + c];
                cell = covers_cell(box, grid, r, c) ? 1 : cell;
            }
        }
    }
    return result;
}

/// Takes the largest block of open cells with the same holders that begins at `first`, rightwards, then downwards.
template <class OnlyWhenCalled = void>
constexpr index_box take_block(box_grid const& grid, std::vector<char>& open, std::size_t first, array_view<rank_cells const> held)
{
    auto const width = grid.width();
    auto const joins = [&](std::size_t cell) {
        bool same = open[cell] != 0;
        for (auto const& has : held) {
            same = same && has.cells[cell] == has.cells[first];
        }
        return same;
    };
    auto const top = first / width;
    auto const left = first % width;
    auto right = left + 1;
    while (right < width && joins(top * width + right)) {
        ++right;
    }
    auto bottom = top + 1;
    for (; bottom < grid.height(); ++bottom) {
        bool whole_row = true;
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
    return {grid.rows[top], grid.rows[bottom], grid.columns[left], grid.columns[right]};
}

/// The wanted boxes that their rank does not hold as one box: most are, which is decided without a grid.
/// @pre both lists ascend by rank
template <class OnlyWhenCalled = void>
constexpr std::vector<placed_box> not_held_whole(array_view<placed_box const> held, array_view<placed_box const> wanted)
{
    std::vector<placed_box> open;
    std::size_t own = 0;  // the first box that this rank or a later one holds
    for (auto const& want : wanted) {
        while (own < held.size() && held[own].rank < want.rank) {
            ++own;
        }
        bool found = elements(want.box) == 0;
        for (auto h = own; h < held.size() && held[h].rank == want.rank; ++h) {
            found = found || elements(intersection(held[h].box, want.box)) == elements(want.box);
        }
        if (!found) {
            open.push_back(want);
        }
    }
    return open;
}

/// Appends what each rank misses of one tensor, ascending by rank. @pre both lists ascend by rank
template <class OnlyWhenCalled = void>
constexpr void append_missing(std::vector<missing_box>& missing, array_view<placed_box const> held, array_view<placed_box const> wanted, tensor_id tensor)
{
    auto const open_wants = not_held_whole(held, wanted);
    if (open_wants.empty()) {
        return;
    }
    box_grid grid;
    add_edges(grid, held);
    add_edges(grid, open_wants);
    auto const has = cells_by_rank(grid, held);
    for (auto& [rank, open] : cells_by_rank(grid, open_wants)) {
        for (auto const& own : has) {
            for (std::size_t cell = 0; own.rank == rank && cell < open.size(); ++cell) {
                open[cell] = own.cells[cell] != 0 ? 0 : open[cell];
            }
        }
        for (std::size_t first = 0; first < open.size(); ++first) {
            if (open[first] == 0) {
                continue;
            }
            missing_box box{rank, {tensor, take_block(grid, open, first, has)}, {}};
            for (auto const& holder : has) {
                if (holder.cells[first] != 0) {
                    box.holders.push_back(holder.rank);
                }
            }
            missing.push_back(std::move(box));
        }
    }
}

}  // namespace rheo::inline v0::detail
