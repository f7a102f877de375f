#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which nodes keep copies of a part: the next ones after its own, each copy from the one before it, as a chain (HyperLoop, SIGCOMM'18, section 4).

#include <span>
#include <vector>

#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

/// A part travels between two ranks of different nodes.
struct replica_route {
    rank_id origin;  ///< whose part it is
    rank_id from;    ///< the origin, or who has the copy before
    rank_id to;
    int item = 0;  ///< numbers the routes between the same two ranks

    friend bool operator==(replica_route const&, replica_route const&) = default;
};

/// Those of all parts, by origin, each copy after the one that it is made from. Fewer copies where fewer nodes are there. The parts of a node
/// go in turn to the ranks of each next node. A pure function: all ranks know the whole answer.
/// @param origins who has a part, ascending  @param members ascending  @param node_size rank / node_size is a rank's node  @param copies of each part
std::vector<replica_route> replica_routes(std::span<rank_id const> origins, std::span<rank_id const> members, int node_size, int copies);

/// The nodes of these ranks.
int nodes_of(std::span<rank_id const> members, int node_size);

}  // namespace rheo::inline v0
