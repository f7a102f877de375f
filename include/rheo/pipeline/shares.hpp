#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which shards of the grid the ranks of a group have: runs as even as can be, in the order of the group. Degrees that do not divide the grid leave some
// ranks one shard more than others.

#include <cstddef>

#include "rheo/pipeline/instance.hpp"
#include "rheo/tensor/shard_grid.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// A group of so many ranks on a grid, seen from one of them. @pre 1 <= degree <= grid, 0 <= member < degree
constexpr shard_group even_group(int grid, int degree, int member)
{
    expects(degree >= 1 && degree <= grid && member >= 0 && member < degree, "each rank of a group has a shard");
    shard_group group{.members = {}, .self = member};
    for (int m = 0; degree > 1 && m < degree; ++m) {
        group.members.push_back(cut_evenly(grid, degree, m));
    }
    return group;
}

/// Stands for the last member of a group, which has the most shards: plans count what it needs for all.
inline constexpr int largest_member = -1;

/// The group of a stage, seen from one of its members. @pre the grid has a shard for each of its ranks
constexpr shard_group group_of(pipeline_instance const& pipeline, stage_id stage, int grid, int member = largest_member)
{
    auto const degree = static_cast<int>(pipeline.stages[at(stage)].size());
    return even_group(grid, degree, member < 0 || member >= degree ? degree - 1 : member);
}

/// The same of a position.
template <class OnlyWhenCalled = void>
constexpr shard_group group_at(pipeline_instance const& pipeline, int position, int grid, int member = largest_member)
{
    auto const groups = groups_of(pipeline);
    auto const degree = static_cast<int>(groups[static_cast<std::size_t>(position)].size());
    return even_group(grid, degree, member < 0 ? degree - 1 : member);
}

}  // namespace rheo::inline v0
