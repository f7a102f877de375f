#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which shards of the grid the ranks of a group have: runs, in the order of the group, of the lengths that the pipeline names or else as even as can be.
// Degrees that do not divide the grid leave some ranks one shard more than others.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "rheo/pipeline/instance.hpp"
#include "rheo/tensor/shard_grid.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// The shares of so many ranks, as even as can be. @pre 1 <= degree <= grid
template <class OnlyWhenCalled = void>
constexpr std::vector<int> even_shares(int grid, int degree)
{
    std::vector<int> shares;
    for (int member = 0; member < degree; ++member) {
        shares.push_back(static_cast<int>(cut_evenly(grid, degree, member).count()));
    }
    return shares;
}

/// The shards of a group dealt to so many ranks, as evenly as can be.
template <class OnlyWhenCalled = void>
std::vector<int> dealt_evenly(std::vector<int> const& shares, std::size_t degree)
{
    return even_shares(std::accumulate(shares.begin(), shares.end(), 0), static_cast<int>(degree));
}

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

/// A group whose ranks have so many shards each, seen from one of them. @pre 0 <= member < shares.size()
constexpr shard_group group_with_shares(array_view<int const> shares, int member)
{
    expects(member >= 0 && static_cast<std::size_t>(member) < shares.size(), "the member is one of the group");
    shard_group group{.members = {}, .self = member};
    std::int64_t next = 0;
    for (auto const share : shares) {
        if (shares.size() > 1) {
            group.members.push_back({next, next + share});
            next += share;
        }
    }
    return group;
}

/// Stands for the last of the members with the most shards: plans count what it needs for all.
inline constexpr int largest_member = -1;

/// The group of a stage, seen from one of its members; one that it does not have stands for the largest. @pre the grid has a shard for each of its ranks
constexpr shard_group group_of(pipeline_instance const& pipeline, stage_id stage, int grid, int member = largest_member)
{
    auto const degree = static_cast<int>(pipeline.stages[at(stage)].size());
    bool const is_member = member >= 0 && member < degree;
    if (pipeline.shares.empty()) {
        return even_group(grid, degree, is_member ? member : degree - 1);
    }
    auto const& shares = pipeline.shares[at(stage)];
    auto largest = degree - 1;
    for (int m = degree - 1; m >= 0; --m) {
        largest = shares[static_cast<std::size_t>(m)] > shares[static_cast<std::size_t>(largest)] ? m : largest;
    }
    return group_with_shares(shares, is_member ? member : largest);
}

/// The same of a position.
template <class OnlyWhenCalled = void>
constexpr shard_group group_at(pipeline_instance const& pipeline, int position, int grid, int member = largest_member)
{
    auto const group = groups_of(pipeline)[static_cast<std::size_t>(position)];
    auto const stage = std::find(pipeline.stages.begin(), pipeline.stages.end(), group) - pipeline.stages.begin();
    return group_of(pipeline, stage_id{static_cast<int>(stage)}, grid, member);
}

}  // namespace rheo::inline v0
