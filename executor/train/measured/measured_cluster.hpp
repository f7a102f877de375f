#pragma once
// SPDX-License-Identifier: Apache-2.0

// The machine that a job runs on, measured as a described cluster (docs/reference/cluster.md): what a layer reaches on each rank's device, how fast its memory
// is copied, and what messages take inside a node and between two.

#include <cstdint>
#include <optional>
#include <span>

#include <mpi.h>

#include "executor/config/config.hpp"
#include "rheo/simulate/cluster/cluster_model.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What a rank computes with, while all others of its node compute, too.
struct measured_device {
    flop_rate compute;         ///< of the layer of a transformer that reaches most, forward and backward
    bytes_per_second traffic;  ///< read and written by a copy
    bytes memory;              ///< of a device what is free; else the rank's share of the node's
    std::int32_t node;         ///< numbers ascend with the ranks, from 0
};

/// The devices of a job by rank, and the links, as one value. The common device has the median rates and memory of the nodes; nodes whose
/// rates are off by more than a tenth differ.
/// @param in_node, between_nodes none: nothing to measure; the link by which planning counts takes its place
/// @returns an error where nodes are no equal runs of ranks
result<cluster_model> cluster_of(std::span<measured_device const> by_rank, std::optional<modelled_link> in_node, std::optional<modelled_link> between_nodes);

/// Measures with all ranks at once, then messages between two. Collective. @param comm null: this process is the only rank
/// @param config says the device, its threads and number formats  @pre repeats >= 1
/// @returns at the first rank the cluster, at others one without levels; an error where the times of messages are not those of a link
/// @throws exit_error, mpi::error
result<cluster_model> measured_cluster(MPI_Comm comm, run_config config, int repeats);

}  // namespace rheo::inline v0
