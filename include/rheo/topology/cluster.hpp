#pragma once
// SPDX-License-Identifier: Apache-2.0

// The machines that planning counts with: equal nodes of equal devices, one kind of link inside a node and
// one between nodes. What really differs between devices is measured, not described.

#include "rheo/topology/link.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct device_description {
    flop_rate compute;         ///< that matrix products reach
    bytes_per_second traffic;  ///< to and from its memory
    bytes memory;              ///< that state and activations may take

    friend constexpr bool operator==(device_description, device_description) = default;
};

struct cluster_description {
    int devices_per_node;
    device_description device;
    modelled_link in_node;  ///< between devices of one node
    modelled_link between_nodes;

    friend constexpr bool operator==(cluster_description, cluster_description) = default;
};

}  // namespace rheo::inline v0
