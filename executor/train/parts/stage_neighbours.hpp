#pragma once
// SPDX-License-Identifier: Apache-2.0

// Between two stages the members of their groups exchange rows: each sends the strips that it has to those that have them in the other group.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rheo/pipeline/shares.hpp"
#include "rheo/tensor/shard_grid.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// A rank of a stage beside this one, and the rows that go to it or come from it.
struct stage_neighbour {
    rank_id rank;
    shard_range rows;
};

/// The ranks of another stage that have some of the rows that are mine. @param rows of an item
inline std::vector<stage_neighbour> neighbours_in(pipeline_instance const& pipeline, stage_id other, shard_range mine, std::int64_t rows, int grid)
{
    std::vector<stage_neighbour> found;
    auto const& ranks = pipeline.stages[at(other)];
    auto group = group_of(pipeline, other, grid);
    for (std::size_t member = 0; member < ranks.size(); ++member) {
        group.self = static_cast<int>(member);
        auto const theirs = rows_of(group.run(grid), rows, grid);
        shard_range const common{std::max(mine.begin, theirs.begin), std::min(mine.end, theirs.end)};
        if (common.begin < common.end) {
            found.push_back({ranks[member], common});
        }
    }
    return found;
}

/// What this rank and the stage beside it exchange for each item, as traces say it.
struct stage_boundary {
    rank_id peer = no_rank;  ///< none where the rows of one of the two ranks go to several
    bytes size{};            ///< of the rows that are both there and here

    friend constexpr bool operator==(stage_boundary, stage_boundary) = default;
};

/// @param stage mine, and the one beside it  @param matrix bytes of all rows of an item
inline stage_boundary boundary_between(pipeline_instance const& pipeline, stage_id stage, stage_id other, shard_range mine, std::int64_t rows, int grid,
                                       std::size_t matrix)
{
    stage_boundary boundary;
    auto const there = neighbours_in(pipeline, other, mine, rows, grid);
    for (auto const& neighbour : there) {
        boundary.size += bytes{neighbour.rows.count() * (static_cast<std::int64_t>(matrix) / rows)};
    }
    if (there.size() == 1) {
        auto group = group_of(pipeline, other, grid);
        auto const& ranks = pipeline.stages[at(other)];
        group.self = static_cast<int>(std::find(ranks.begin(), ranks.end(), there.front().rank) - ranks.begin());
        bool const only = neighbours_in(pipeline, stage, rows_of(group.run(grid), rows, grid), rows, grid).size() == 1;
        boundary.peer = only ? there.front().rank : no_rank;
    }
    return boundary;
}

/// These rows of a matrix that has all of them. @param all rows of the matrix
template <class T>
std::span<T> rows_in(std::span<T> matrix, shard_range rows, std::int64_t all)
{
    auto const row = matrix.size() / static_cast<std::size_t>(all);
    return matrix.subspan(static_cast<std::size_t>(rows.begin) * row, static_cast<std::size_t>(rows.count()) * row);
}

}  // namespace rheo::inline v0
