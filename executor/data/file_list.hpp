#pragma once
// SPDX-License-Identifier: Apache-2.0

// The files that a user means by paths: files in the order they are named, folders recursively in the order of their paths, without hidden files.

#include <string>
#include <vector>

namespace rheo::inline v0 {

/// @throws exit_error (bad_data) naming the path: it does not exist, cannot be read, or is a folder without files
std::vector<std::string> list_files(std::vector<std::string> const& paths);

}  // namespace rheo::inline v0
