#pragma once
// SPDX-License-Identifier: Apache-2.0

// A described cluster as TOML (docs/reference/cluster.md): devices, the levels of the network from the inside out, nodes that differ, storage,
// recovery, what NCCL finds. Units stand in the names of keys. Unknown keys are refused with the nearest known one, and a refusal names file and line.

#include <functional>
#include <string>
#include <string_view>

#include "rheo/simulate/cluster/cluster_model.hpp"

namespace rheo::inline v0 {

/// Of what a byte takes, as lines of measured messages are written: 1 us for each MiB, in s.
inline constexpr double us_per_mib = 1e-6 / 1048576.0;

/// Text of a file that a cluster names: measured times, the report of a run. Throws exit_error when it cannot be read.
using named_file_reader = std::function<std::string(std::string const& path)>;

/// Reads and checks one. @param name what refusals call the text. @throws exit_error (usage) one sentence
cluster_model parse_cluster(std::string_view text, std::string const& name, named_file_reader const& read);

/// The same from a file; files that it names are looked for beside it. @throws exit_error also when one cannot be read
cluster_model read_cluster_file(std::string const& path);

/// The text of a cluster; reading it gives the same cluster. A measured link is written as what was fitted to it.
std::string to_toml(cluster_model const& cluster);

}  // namespace rheo::inline v0
