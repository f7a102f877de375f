#pragma once
// SPDX-License-Identifier: Apache-2.0

// The cluster that a config plans for (plan.cluster).

#include <string>

#include "rheo/simulate/cluster/cluster_model.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// The cluster in the file, which is read once, or what is wrong with it.
result<cluster_model> find_cluster(std::string const& path);

}  // namespace rheo::inline v0
