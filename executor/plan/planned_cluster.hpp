#pragma once
// SPDX-License-Identifier: Apache-2.0

// The cluster that a config plans for (plan.cluster).

#include <span>
#include <string>

#include "rheo/simulate/cluster/cluster_model.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The cluster in the file, which is read once, or what is wrong with it.
result<cluster_model> find_cluster(std::string const& path);

/// What the devices of these ranks compute together; 0: there is no such description, or it lacks a device for one of them.
flop_rate compute_of(std::string const& path, std::span<rank_id const> ranks);

}  // namespace rheo::inline v0
