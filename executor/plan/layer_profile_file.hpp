#pragma once
// SPDX-License-Identifier: Apache-2.0

// A profile of layers that a config or a command names: a file that is read once and kept for the life of the process, so that all plans of
// a job follow the same times. All ranks read the same file.

#include <string>
#include <vector>

#include "rheo/model/footprint.hpp"
#include "rheo/partition/layer_profile_csv.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// The layers of the file, or why it is none.
result<std::vector<layer_profile>> find_layer_profile(std::string const& path, dtype_policy const& policy);

}  // namespace rheo::inline v0
