#pragma once
// SPDX-License-Identifier: Apache-2.0

// Repairs pipelines of groups after ranks were lost or leave. Pipelines keep their cuts, and each group lies in one node. A spare of the node takes the
// shards of a lost rank; without one, the rest of its group share them as evenly as possible. An empty position takes spares of any one node, or a rank from
// the largest group of its pipeline. If a pipeline cannot be kept, the one with the most positions gives its ranks to the others. So as many pipelines as
// possible stay, hence copies of each cell, and then groups stay large.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rheo/pipeline/instance.hpp"
#include "rheo/pipeline/recomposition.hpp"
#include "rheo/pipeline/shares.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// Which places ranks that wait take.
enum class group_filling : std::uint8_t {
    all,        ///< those of lost ranks
    only_empty  ///< one in each group that has no rank left
};

namespace detail {

inline constexpr rank_id no_member{-1};

/// A pipeline while its groups are repaired: a lost member leaves a hole, so that the others keep their shards when another rank takes its place.
template <class OnlyWhenCalled = void>
struct damaged_pipeline {
    pipeline_instance before;
    std::vector<std::vector<rank_id>> groups;

    int members(std::size_t position) const
    {
        return static_cast<int>(groups[position].size() - static_cast<std::size_t>(std::ranges::count(groups[position], no_member)));
    }
    bool has_empty() const
    {
        for (std::size_t position = 0; position < groups.size(); ++position) {
            if (members(position) == 0) {
                return true;
            }
        }
        return false;
    }

    /// Groups that have as many ranks as before keep their shares.
    pipeline_instance instance() const
    {
        auto const where = placement_of(before);
        pipeline_instance now{before.cuts, {}};
        for (std::size_t stage = 0; stage < where.positions.size(); ++stage) {
            auto group = groups[static_cast<std::size_t>(where.positions[stage])];
            std::erase(group, no_member);
            if (!before.shares.empty() && !group.empty()) {
                auto const& shares = before.shares[stage];
                now.shares.push_back(shares.size() == group.size() ? shares : dealt_evenly(shares, group.size()));
            }
            now.stages.push_back(std::move(group));
        }
        return now;
    }

    /// A member of the group; no_member when it has none.
    rank_id any_member(std::size_t position) const
    {
        auto const member = std::find_if(groups[position].begin(), groups[position].end(), [](rank_id r) { return r != no_member; });
        return member == groups[position].end() ? no_member : *member;
    }

    /// Ranks that wait fill holes. @param choose the rank that joins a member's node, or takes an empty position
    template <class Choose>
    void fill(group_filling holes, Choose const& choose)
    {
        for (std::size_t position = 0; position < groups.size(); ++position) {
            for (auto& member : groups[position]) {
                if (member == no_member && (holes == group_filling::all || members(position) == 0)) {
                    member = choose(any_member(position));
                }
            }
        }
    }

    /// A rank of the largest group goes to an empty one. False when no group has two.
    bool lend()
    {
        std::size_t largest = 0, empty = 0;
        for (std::size_t position = 0; position < groups.size(); ++position) {
            largest = members(position) > members(largest) ? position : largest;
            empty = members(position) == 0 ? position : empty;
        }
        if (members(largest) < 2) {
            return false;
        }
        auto const lent = std::find_if(groups[largest].rbegin(), groups[largest].rend(), [](rank_id r) { return r != no_member; });
        groups[empty].front() = std::exchange(*lent, no_member);
        return true;
    }
};

/// The ranks that wait, by node.
template <class OnlyWhenCalled = void>
struct waiting_ranks {
    std::vector<rank_id> free;  ///< ascending
    int node_size;              ///< 1: nothing is known of nodes, all ranks are on one

    std::int32_t node_of(rank_id rank) const { return node_size > 1 ? rank.value / node_size : 0; }

    /// The first rank of the node, which waits no more; no_member when there is none.
    rank_id take(std::int32_t node)
    {
        auto const place = std::find_if(free.begin(), free.end(), [&](rank_id rank) { return node_of(rank) == node; });
        if (place == free.end()) {
            return no_member;
        }
        auto const taken = *place;
        free.erase(place);
        return taken;
    }

    /// The node that has most ranks which its own groups do not miss. @pre a rank waits
    std::int32_t node_with_most(std::vector<damaged_pipeline<>> const& pipelines) const
    {
        std::map<std::int32_t, int> room;
        for (auto const rank : free) {
            ++room[node_of(rank)];
        }
        for (auto const& pipeline : pipelines) {
            for (std::size_t position = 0; position < pipeline.groups.size(); ++position) {
                auto const node = pipeline.members(position) > 0 ? room.find(node_of(pipeline.any_member(position))) : room.end();
                if (node != room.end()) {
                    node->second -= static_cast<int>(pipeline.groups[position].size()) - pipeline.members(position);
                }
            }
        }
        return std::max_element(room.begin(), room.end(), [](auto const& a, auto const& b) { return a.second < b.second; })->first;
    }
};

/// Relative time of a microbatch: that of the position with most layers for each of its ranks.
template <class OnlyWhenCalled = void>
double slowest_position(pipeline_instance const& pipeline)
{
    double slowest = 0;
    for (auto const& group : groups_of(pipeline)) {
        slowest = std::max(slowest, static_cast<double>(layer_count(layers_of(pipeline, group.front()))) / static_cast<double>(group.size()));
    }
    return slowest;
}

}  // namespace detail

/// Deals microbatches to pipelines of groups: each to the one that is done first.
template <class OnlyWhenCalled = void>
std::vector<int> shares_by_speed(array_view<pipeline_instance const> pipelines, int microbatches)
{
    std::vector<int> shares(pipelines.size(), 0);
    std::vector<double> costs;
    for (auto const& pipeline : pipelines) {
        costs.push_back(detail::slowest_position(pipeline));
    }
    for (int m = 0; m < microbatches; ++m) {
        std::size_t best = 0;
        for (std::size_t p = 1; p < pipelines.size(); ++p) {
            auto const time = [&](std::size_t which) { return (shares[which] + 1) * costs[which]; };
            best = time(p) < time(best) ? p : best;
        }
        ++shares[best];
    }
    return shares;
}

/// What a repair is to keep to.
struct group_repair {
    int microbatches;   ///< of a step
    int failures;       ///< f of f + 1 copies
    int node_size = 1;  ///< rank / node_size is a rank's node; 1: nothing is known of nodes
    group_filling fill = group_filling::all;
};

/// @param staying the ranks that have, or may get, a place, ascending  @param fits whether the ranks of a pipeline have the memory for it
/// @returns why no pipeline can be kept
template <class Fits>
result<recomposition> repair_groups(array_view<pipeline_instance const> before, array_view<rank_id const> staying, group_repair rules, Fits const& fits)
{
    detail::waiting_ranks<> waiting{{staying.begin(), staying.end()}, rules.node_size};
    auto& free = waiting.free;
    std::vector<detail::damaged_pipeline<>> pipelines;
    for (auto const& pipeline : before) {
        auto& now = pipelines.emplace_back(detail::damaged_pipeline<>{pipeline, groups_of(pipeline)});
        for (auto& group : now.groups) {
            for (auto& rank : group) {
                rank = std::binary_search(staying.begin(), staying.end(), rank) ? rank : detail::no_member;
                std::erase(free, rank);
            }
        }
    }
    auto const choose = [&](rank_id member) {
        auto const node = member != detail::no_member || free.empty() ? waiting.node_of(member) : waiting.node_with_most(pipelines);
        return waiting.take(node);
    };
    auto const fill = [&] {
        for (auto const holes : {group_filling::only_empty, rules.fill}) {
            for (auto& pipeline : pipelines) {
                pipeline.fill(holes, choose);
            }
        }
    };
    auto const is_kept = [&](detail::damaged_pipeline<>& pipeline) {
        bool lends = true;
        while (lends && pipeline.has_empty()) {
            lends = pipeline.lend();
        }
        return lends && fits(pipeline.instance());
    };
    for (fill(); !pipelines.empty(); fill()) {
        auto worst = pipelines.size();
        for (std::size_t p = 0; p < pipelines.size(); ++p) {
            if (!is_kept(pipelines[p]) && (worst == pipelines.size() || pipelines[p].groups.size() >= pipelines[worst].groups.size())) {
                worst = p;
            }
        }
        if (worst == pipelines.size()) {
            break;
        }
        for (auto const& group : pipelines[worst].groups) {
            std::copy_if(group.begin(), group.end(), std::back_inserter(free), [](rank_id rank) { return rank != detail::no_member; });
        }
        std::sort(free.begin(), free.end());
        pipelines.erase(pipelines.begin() + static_cast<std::ptrdiff_t>(worst));
    }
    if (pipelines.empty()) {
        return failure{"no pipeline of groups can be kept with the " + std::to_string(staying.size()) + " ranks that are left"};
    }
    recomposition next{.spares = std::move(free), .degraded = static_cast<int>(pipelines.size()) < rules.failures + 1};
    for (auto const& pipeline : pipelines) {
        next.pipelines.push_back(pipeline.instance());
    }
    next.shares = shares_by_speed(next.pipelines, rules.microbatches);
    return next;
}

}  // namespace rheo::inline v0
