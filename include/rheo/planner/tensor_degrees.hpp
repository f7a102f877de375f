#pragma once
// SPDX-License-Identifier: Apache-2.0

// The tensor-parallel degrees that a request asks for, and the groups of ranks that follow: ranks in their order, so many to each position. A group takes
// the place that a rank has in planning; a pipeline of groups is planned as one of single ranks.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "rheo/planner/detail/text.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

struct tensor_degrees {
    std::vector<int> values{1};  ///< one for all positions, or one for each, pipelines one after the other; 0 alone: the planner chooses one

    int largest() const { return values.empty() ? 1 : *std::max_element(values.begin(), values.end()); }
    bool is_one() const { return largest() == 1; }
    bool is_automatic() const { return values == std::vector{0}; }

    friend bool operator==(tensor_degrees const&, tensor_degrees const&) = default;
};

/// The ranks in groups.
struct ranks_in_groups {
    std::vector<std::vector<rank_id>> groups{};
    std::vector<int> pipelines{};   ///< groups of each pipeline; empty: the planner chooses
    std::vector<rank_id> spares{};  ///< of whom there are not enough for a group, and those that are to wait
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

}  // namespace detail

/// Ranks 0 .. ranks-1 in groups. A group lies in one node. @returns why that cannot be
template <class OnlyWhenCalled = void>
result<ranks_in_groups> group_ranks(tensor_degrees const& degrees, std::vector<int> const& pipelines, int ranks, int spares, int node_size)
{
    if (degrees.values.empty() || *std::min_element(degrees.values.begin(), degrees.values.end()) < 1) {
        return failure{detail::degrees_text(degrees) + " must name at least one rank for each position"};
    }
    ranks_in_groups made;
    bool const each = degrees.values.size() > 1;
    if (each && pipelines.empty()) {
        return failure{detail::degrees_text(degrees) + " names positions, so plan.pipelines must say how many ranks each pipeline has"};
    }
    if (!pipelines.empty()) {
        auto counts = detail::groups_of_pipelines(degrees, pipelines);
        if (!counts) {
            return failure{counts.error()};
        }
        made.pipelines = *std::move(counts);
    }
    auto const positions = pipelines.empty() ? (ranks - spares) / degrees.values.front() : std::accumulate(made.pipelines.begin(), made.pipelines.end(), 0);
    rank_id next{0};
    for (int position = 0; position < positions; ++position) {
        auto const degree = degrees.values[each ? static_cast<std::size_t>(position) : 0];
        auto const left = node_size - next.value % node_size;
        if (pipelines.empty() && node_size > 1 && degree > left) {  // the planner leaves the rest of a node to the spares
            for (int i = 0; i < left; ++i) {
                made.spares.push_back(next);
                ++next;
            }
        }
        if (node_size > 1 && next.value / node_size != (next.value + degree - 1) / node_size) {
            return failure{detail::degrees_text(degrees) + ": ranks " + std::to_string(next.value) + " to " + std::to_string(next.value + degree - 1) +
                           " of a group lie on two nodes of plan.node_size = " + std::to_string(node_size)};
        }
        if (next.value + degree > ranks - spares) {
            break;
        }
        auto& group = made.groups.emplace_back();
        for (int member = 0; member < degree; ++member) {
            group.push_back(next);
            ++next;
        }
    }
    for (; next.value < ranks; ++next) {
        made.spares.push_back(next);
    }
    if (made.groups.empty()) {
        return failure{detail::degrees_text(degrees) + " needs more than " + detail::ranks_text(ranks - spares)};
    }
    return made;
}

}  // namespace rheo::inline v0
