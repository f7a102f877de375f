#pragma once
// SPDX-License-Identifier: Apache-2.0

// Ranks that wait join groups of their node, so that stages take less time: groups that shared the shards of a lost rank become whole again.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/pipeline/instance.hpp"
#include "rheo/pipeline/shares.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The rank joins the group of a position. Shares that are named become even.
template <class OnlyWhenCalled = void>
void add_member(pipeline_instance& pipeline, rank_id of_position, rank_id joins)
{
    for (std::size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
        auto& group = pipeline.stages[stage];
        if (group.front() == of_position) {
            group.push_back(joins);
            if (!pipeline.shares.empty()) {
                pipeline.shares[stage] = dealt_evenly(pipeline.shares[stage], group.size());
            }
        }
    }
}

}  // namespace detail

/// How far groups may grow.
struct group_growth {
    int largest;        ///< ranks of a group
    int node_size = 1;  ///< rank / node_size is a rank's node; 1: nothing is known of nodes
};

/// Each rank joins the group of its node that has most layers for each of its ranks and fewer ranks than `largest`. @returns the ranks that join none
template <class OnlyWhenCalled = void>
std::vector<rank_id> grow_groups(std::vector<pipeline_instance>& pipelines, array_view<rank_id const> waiting, group_growth rules)
{
    std::vector<rank_id> left;
    for (auto const rank : waiting) {
        pipeline_instance* slowest = nullptr;
        rank_id of_position{};
        double most = 0;
        for (auto& pipeline : pipelines) {
            for (auto const& group : groups_of(pipeline)) {
                auto const load = static_cast<double>(layer_count(layers_of(pipeline, group.front()))) / static_cast<double>(group.size());
                bool const is_here = rules.node_size == 1 || group.front().value / rules.node_size == rank.value / rules.node_size;
                if (is_here && static_cast<int>(group.size()) < rules.largest && load > most) {
                    most = load;
                    slowest = &pipeline;
                    of_position = group.front();
                }
            }
        }
        if (slowest == nullptr) {
            left.push_back(rank);
        } else {
            detail::add_member(*slowest, of_position, rank);
        }
    }
    return left;
}

}  // namespace rheo::inline v0
