#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where each rank's time in a step went.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/analyze/step/step_class.hpp"
#include "rheo/analyze/step/step_graph.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What became of each rank's time from its begin to the end of its update: by row, in classes whose sum is that time. Waiting is bubble until
/// those that are waited for are through, then it is that of the message, reduction or vote. Cost: linear.
template <class OnlyWhenCalled = void>
std::vector<class_times> accounts_of(step_graph const& graph)
{
    std::vector<class_times> accounts(graph.ranks.size());
    for (auto const& node : graph.nodes) {
        if (node.row == no_step_node) {
            continue;
        }
        auto& account = accounts[node.row];
        auto const before = node.before == no_step_node ? graph.begins[node.row] : graph.nodes[node.before].end;
        auto const reached = node.end - node.own;
        auto const waiting = std::max(reached - before - node.host, seconds{});
        auto since = before + node.host;  // those that it awaits are through
        for (auto const m : graph.awaits_of(node)) {
            since = std::max(since, graph.nodes[m].end);
        }
        auto const bubble = std::min(since - (before + node.host), waiting);
        account[step_class::host] += std::min(node.host, reached - before);
        account[step_class::bubble] += bubble;
        account[node.lag_class] += waiting - bubble;
        account[node.own_class] += node.own;
    }
    return accounts;
}

}  // namespace rheo::inline v0
