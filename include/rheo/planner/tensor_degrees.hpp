#pragma once
// SPDX-License-Identifier: Apache-2.0

// The tensor-parallel degrees that a request asks for, and the groups of ranks that follow: so many to each position, each group in one node. A group takes
// the place that a rank has in planning; a pipeline of groups is planned as one of single ranks. The numbers of the ranks may have gaps, as after losses.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "rheo/planner/detail/groups_to_nodes.hpp"
#include "rheo/planner/detail/text.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

struct tensor_degrees {
    std::vector<int> values{1};  ///< one for all positions, or one for each, pipelines one after the other; 0 alone: the planner chooses one
    bool is_chosen = false;      ///< the planner chose the one degree, and may choose smaller ones after losses

    int largest() const { return values.empty() ? 1 : *std::max_element(values.begin(), values.end()); }
    bool is_one() const { return largest() == 1; }
    bool is_automatic() const { return values == std::vector{0}; }

    friend bool operator==(tensor_degrees const&, tensor_degrees const&) = default;
};

/// The ranks in groups.
struct ranks_in_groups {
    std::vector<std::vector<rank_id>> groups{};
    std::vector<int> pipelines{};    ///< groups of each pipeline; empty: the planner chooses
    std::vector<rank_id> spares{};   ///< of whom there are not enough for a group, and those that are to wait
    std::vector<rank_id> numbers{};  ///< group -> the number that it has in planning
    int groups_per_node = 1;         ///< number / groups_per_node is a group's node; 1: groups of different sizes, which cannot exchange their places
};

namespace detail {

template <class OnlyWhenCalled = void>
std::string degrees_text(tensor_degrees const& degrees)
{
    return "plan.tensor = " + (degrees.values.size() == 1 ? std::to_string(degrees.values.front()) : list_text(degrees.values));
}

/// How many groups each pipeline has. @returns why the ranks of a pipeline cannot be its groups
template <class OnlyWhenCalled = void>
result<std::vector<int>> groups_of_pipelines(tensor_degrees const& degrees, std::vector<int> const& pipelines)
{
    std::vector<int> counts;
    std::size_t next = 0;
    for (std::size_t p = 0; p < pipelines.size(); ++p) {
        int ranks = 0, groups = 0;
        while (ranks < pipelines[p] && (degrees.values.size() == 1 || next < degrees.values.size())) {
            ranks += degrees.values[degrees.values.size() == 1 ? 0 : next++];
            ++groups;
        }
        if (ranks != pipelines[p]) {
            return failure{"plan.pipelines = " + list_text(pipelines) + " gives pipeline " + std::to_string(p) + " " + std::to_string(pipelines[p]) +
                           " ranks, which are no whole groups of " + degrees_text(degrees)};
        }
        counts.push_back(groups);
    }
    if (degrees.values.size() > 1 && next != degrees.values.size()) {
        return failure{degrees_text(degrees) + " must name the ranks of " + std::to_string(next) + " positions, as plan.pipelines = " + list_text(pipelines) +
                       " has them, not of " + std::to_string(degrees.values.size())};
    }
    return counts;
}

/// The ranks by their nodes. If nothing is known of nodes, all are on one.
template <class OnlyWhenCalled = void>
std::vector<std::vector<rank_id>> ranks_by_node(array_view<rank_id const> ranks, int node_size)
{
    std::vector<std::vector<rank_id>> nodes;
    for (auto const rank : ranks) {
        if (nodes.empty() || (node_size > 1 && nodes.back().front().value / node_size != rank.value / node_size)) {
            nodes.emplace_back();
        }
        nodes.back().push_back(rank);
    }
    return nodes;
}

template <class OnlyWhenCalled = void>
std::string no_node_error(tensor_degrees const& degrees, int groups, std::vector<std::vector<rank_id>> const& nodes, int node_size)
{
    constexpr std::size_t listed = 8;
    std::string sizes;
    for (std::size_t node = 0; node < std::min(nodes.size(), listed); ++node) {
        sizes += (node == 0 ? "" : ", ") + std::to_string(nodes[node].size());
    }
    return degrees_text(degrees) + ": " + std::to_string(groups) + (groups == 1 ? " group does" : " groups do") + " not fit into nodes of " + sizes +
           (nodes.size() > listed ? ", ..." : "") + " ranks; a group lies in one node of plan.node_size = " + std::to_string(node_size);
}

/// Ranks in their order, if each group then lies in one node; else none.
template <class OnlyWhenCalled = void>
std::vector<std::vector<rank_id>> groups_in_order(array_view<int const> sizes, array_view<rank_id const> ranks, int node_size)
{
    std::vector<std::vector<rank_id>> groups;
    std::size_t next = 0;
    for (auto const size : sizes) {
        auto const members = ranks.subspan(next, static_cast<std::size_t>(size));
        if (node_size > 1 && members.front().value / node_size != members.back().value / node_size) {
            return {};
        }
        groups.emplace_back(members.begin(), members.end());
        next += members.size();
    }
    return groups;
}

/// Groups of these sizes, each in one node; none where they do not fit.
template <class OnlyWhenCalled = void>
std::vector<std::vector<rank_id>> groups_on_nodes(array_view<int const> sizes, array_view<rank_id const> ranks, int node_size)
{
    auto groups = groups_in_order(sizes, ranks, node_size);
    if (!groups.empty()) {
        return groups;
    }
    auto const nodes = ranks_by_node(ranks, node_size);
    std::vector<int> room;
    for (auto const& node : nodes) {
        room.push_back(static_cast<int>(node.size()));
    }
    auto const node_of = groups_to_nodes<OnlyWhenCalled>{sizes, std::move(room)}.search();
    std::vector<std::size_t> next(nodes.size());
    for (std::size_t group = 0; node_of && group < sizes.size(); ++group) {
        auto const node = (*node_of)[group];
        auto const first = nodes[node].begin() + static_cast<std::ptrdiff_t>(next[node]);
        groups.emplace_back(first, first + sizes[group]);
        next[node] += static_cast<std::size_t>(sizes[group]);
    }
    return groups;
}

}  // namespace detail

/// These ranks in groups, each in one node. Groups of one size are made node after node, and what is left of a node waits. Groups of different sizes take
/// the ranks in their order; where some then lay on two nodes, each way to place them is tried. @param ranks ascending  @returns why that cannot be
template <class OnlyWhenCalled = void>
result<ranks_in_groups> group_ranks(tensor_degrees const& degrees, std::vector<int> const& pipelines, array_view<rank_id const> ranks, int spares,
                                    int node_size)
{
    if (degrees.values.empty() || *std::min_element(degrees.values.begin(), degrees.values.end()) < 1) {
        return failure{detail::degrees_text(degrees) + " must name at least one rank for each position"};
    }
    ranks_in_groups made;
    if (degrees.values.size() > 1 && pipelines.empty()) {
        return failure{detail::degrees_text(degrees) + " names positions, so plan.pipelines must say how many ranks each pipeline has"};
    }
    if (!pipelines.empty()) {
        auto counts = detail::groups_of_pipelines(degrees, pipelines);
        if (!counts) {
            return failure{counts.error()};
        }
        made.pipelines = *std::move(counts);
    }
    auto const first = degrees.values.front();
    auto const with_place = static_cast<int>(ranks.size()) - spares;
    if (with_place < (pipelines.empty() ? first : std::accumulate(pipelines.begin(), pipelines.end(), 0))) {
        return failure{detail::degrees_text(degrees) + " needs more than " + detail::ranks_text(with_place)};
    }
    auto const nodes = detail::ranks_by_node(ranks, node_size);
    auto const positions = pipelines.empty() ? with_place / first : std::accumulate(made.pipelines.begin(), made.pipelines.end(), 0);
    if (std::count(degrees.values.begin(), degrees.values.end(), first) == std::ssize(degrees.values)) {
        made.groups_per_node = node_size > 1 ? std::max(node_size / first, 1) : 1;
        for (auto const& node : nodes) {
            auto const whole = std::min(static_cast<int>(node.size()) / first, positions - static_cast<int>(made.groups.size()));
            for (int group = 0; group < whole; ++group) {
                made.numbers.push_back(rank_id{node_size > 1 ? node.front().value / node_size * made.groups_per_node + group : group});
                made.groups.emplace_back(node.begin() + group * first, node.begin() + (group + 1) * first);
            }
        }
    } else {
        made.groups = detail::groups_on_nodes(degrees.values, ranks, node_size);
        for (rank_id group{0}; at(group) < made.groups.size(); ++group) {
            made.numbers.push_back(group);
        }
    }
    if (made.groups.empty() || (!pipelines.empty() && std::ssize(made.groups) < positions)) {
        return failure{detail::no_node_error(degrees, pipelines.empty() ? 1 : positions, nodes, node_size)};
    }
    std::vector<rank_id> taken;
    for (auto const& group : made.groups) {
        taken.insert(taken.end(), group.begin(), group.end());
    }
    std::sort(taken.begin(), taken.end());
    std::set_difference(ranks.begin(), ranks.end(), taken.begin(), taken.end(), std::back_inserter(made.spares));
    return made;
}

}  // namespace rheo::inline v0
