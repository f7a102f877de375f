#pragma once
// SPDX-License-Identifier: Apache-2.0

// Planning for a described cluster: its device, links and nodes replace the defaults of a request.

#include "rheo/planner/planning_request.hpp"
#include "rheo/simulate/cluster/cluster_model.hpp"
#include "rheo/topology/cluster.hpp"

namespace rheo::inline v0 {

/// The cluster as planning models it: equal nodes with the common device, the link inside a node, and the outermost link.
inline cluster_description described(cluster_model const& cluster)
{
    return {.devices_per_node = cluster.levels.front().network.members,
            .device = cluster.device.description,
            .in_node = cluster.levels.front().network.link,
            .between_nodes = cluster.levels.back().network.link};
}

/// The request for the cluster. Its own node size and memory limit stay; the defaults are the cluster's nodes and a device's memory.
/// @pre cluster_fault is empty
template <class OnlyWhenCalled = void>
planning_request on_cluster(planning_request request, cluster_model const& cluster)
{
    request.machine = described(cluster);
    if (request.node_size == 1 && cluster.levels.size() > 1) {
        request.node_size = request.machine.devices_per_node;
    }
    if (!request.memory_limit) {
        request.memory_limit = cluster.device.description.memory;
    }
    return request;
}

}  // namespace rheo::inline v0
