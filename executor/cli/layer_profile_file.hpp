#pragma once
// SPDX-License-Identifier: Apache-2.0

// A profile of layers that the user names.

#include <cstddef>
#include <string>
#include <vector>

#include "rheo/partition/layer_profile.hpp"

namespace rheo::cli {

/// Reads it. @throws exit_error with exit code 4 when the file is no profile of so many layers that says what sharing them between the devices
/// of a node takes
std::vector<layer_profile> read_layer_profile(std::string const& path, std::size_t layers, dtype_policy const& policy, int node_size = 1);

}  // namespace rheo::cli
