#pragma once
// SPDX-License-Identifier: Apache-2.0

// The steps of a run as a table for other programs: a row per committed step (docs/reference/csv.md).

#include <string>

#include "executor/records/run_folder.hpp"

namespace rheo::inline v0 {

/// With a line of column names. Empty: not known; nan: not finite.
std::string steps_csv(run_folder const& run);

}  // namespace rheo::inline v0
