#pragma once
// SPDX-License-Identifier: Apache-2.0

// What `rheo trace` does with Chakra execution traces, an action each.

#include <string>

#include "executor/cli/commands.hpp"

namespace rheo::cli {

int check_traces(std::string const& prefix);

/// @throws exit_error: no plan or run that can be exported, files that cannot be written
int export_traces(trace_options const& options);

/// @throws exit_error: traces that cannot be played, or that hang
int import_traces(trace_import_options const& options);

/// @returns 1 where they differ
int compare_traces(std::string const& a, std::string const& b, bool times);

}  // namespace rheo::cli
