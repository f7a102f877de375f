#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a recorded step would have been: its graph played again with other times, its critical path, and how much later each operation could have
// ended. Operations keep their order; what a rank would do in another order is the planner's question.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "rheo/analyze/step/step_class.hpp"
#include "rheo/analyze/step/step_graph.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The times of a node in a replay.
struct node_times {
    seconds own;
    seconds lag;
    seconds host;

    friend constexpr bool operator==(node_times, node_times) = default;
};

/// As recorded.
constexpr node_times times_of(step_node const& node) { return {node.own, node.lag, node.host}; }

/// As recorded, but what belongs to a class takes no time. A lag below zero, which clocks that differ leave, stays.
constexpr node_times times_without(step_node const& node, step_class c)
{
    auto times = times_of(node);
    times.own = node.own_class == c ? seconds{} : times.own;
    times.lag = node.lag_class == c ? std::min(times.lag, seconds{}) : times.lag;
    times.host = c == step_class::host ? seconds{} : times.host;
    return times;
}

/// When each node ends with these times. @param times step_node const& -> node_times. Cost: linear.
template <class Times>
std::vector<seconds> replayed_ends(step_graph const& graph, Times const& times)
{
    std::vector<seconds> ends(graph.nodes.size());
    for (auto const n : graph.order) {
        auto const& node = graph.nodes[n];
        auto const [own, lag, host] = times(node);
        auto reached = seconds{-std::numeric_limits<double>::infinity()};
        if (node.row != no_step_node) {
            reached = (node.before == no_step_node ? graph.begins[node.row] : ends[node.before]) + host;
        }
        for (auto const m : graph.awaits_of(node)) {
            reached = std::max(reached, ends[m] + lag);
        }
        ends[n] = reached + own;
    }
    return ends;
}

/// As recorded, which replaying gives again.
template <class OnlyWhenCalled = void>
std::vector<seconds> recorded_ends(step_graph const& graph)
{
    std::vector<seconds> ends;
    ends.reserve(graph.nodes.size());
    for (auto const& node : graph.nodes) {
        ends.push_back(node.end);
    }
    return ends;
}

/// The last end. @pre the graph has a node
inline seconds last_of(std::vector<seconds> const& ends) { return *std::max_element(ends.begin(), ends.end()); }

/// From the first rank's begin to the last end; 0 without nodes.
inline seconds span_of(step_graph const& graph, std::vector<seconds> const& ends)
{
    return ends.empty() ? seconds{} : last_of(ends) - *std::min_element(graph.begins.begin(), graph.begins.end());
}

/// The length of the step as it was.
template <class OnlyWhenCalled = void>
seconds span_of(step_graph const& graph)
{
    return span_of(graph, replayed_ends(graph, times_of));
}

/// The length of the step if a class took no time.
template <class OnlyWhenCalled = void>
seconds span_without(step_graph const& graph, step_class c)
{
    return span_of(graph, replayed_ends(graph, [c](step_node const& node) { return times_without(node, c); }));
}

/// The chain of operations and waits that the step is as long as.
struct critical_path {
    std::vector<std::uint32_t> nodes;  ///< from the first to the last
    class_times times;                 ///< what the path consists of; no bubble; their sum is the step's length
};

/// Of ways of equal length the one that stays on its rank. Cost: linear.
template <class OnlyWhenCalled = void>
critical_path critical_path_of(step_graph const& graph)
{
    critical_path path;
    auto const& nodes = graph.nodes;
    if (nodes.empty()) {
        return path;
    }
    auto const last = std::max_element(nodes.begin(), nodes.end(), [](step_node const& a, step_node const& b) { return a.end < b.end; });
    auto n = static_cast<std::uint32_t>(last - nodes.begin());
    while (n != no_step_node) {
        auto const& node = nodes[n];
        path.nodes.push_back(n);
        path.times[node.own_class] += node.own;
        auto const on_rank = node.row == no_step_node      ? seconds{-std::numeric_limits<double>::infinity()}
                             : node.before == no_step_node ? graph.begins[node.row] + node.host
                                                           : nodes[node.before].end + node.host;
        auto next = node.before;
        auto latest = on_rank;
        for (auto const m : graph.awaits_of(node)) {
            if (nodes[m].end + node.lag > latest) {
                latest = nodes[m].end + node.lag;
                next = m;
            }
        }
        if (latest == on_rank) {
            path.times[step_class::host] += node.host;
            if (node.before == no_step_node) {  // the rank's begin, which may be later than that of others
                path.times[step_class::host] += graph.begins[node.row] - *std::min_element(graph.begins.begin(), graph.begins.end());
            }
        } else if (node.row != no_step_node) {
            path.times[node.lag_class] += node.lag;
        }
        n = next;
    }
    std::reverse(path.nodes.begin(), path.nodes.end());
    return path;
}

/// By how much each node could have ended later without a longer step; 0 on the critical path. Cost: linear.
template <class OnlyWhenCalled = void>
std::vector<seconds> slack_of(step_graph const& graph)
{
    std::vector<seconds> slack(graph.nodes.size(), seconds{std::numeric_limits<double>::infinity()});
    seconds last{-std::numeric_limits<double>::infinity()};
    for (auto const& node : graph.nodes) {
        last = std::max(last, node.end);
    }
    for (auto k = graph.order.size(); k-- > 0;) {
        auto const n = graph.order[k];
        auto const& node = graph.nodes[n];
        slack[n] = std::min(slack[n], last - node.end);
        auto const reached = node.end - node.own;
        if (node.before != no_step_node) {
            auto const room = node.row == no_step_node ? seconds{} : reached - (graph.nodes[node.before].end + node.host);
            slack[node.before] = std::min(slack[node.before], slack[n] + room);
        }
        for (auto const m : graph.awaits_of(node)) {
            slack[m] = std::min(slack[m], slack[n] + (reached - (graph.nodes[m].end + node.lag)));
        }
    }
    return slack;
}

}  // namespace rheo::inline v0
