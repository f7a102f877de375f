#pragma once
// SPDX-License-Identifier: Apache-2.0

// plan.json as `rheo plan --json` prints it and `rheo train --plan` takes it. Errors name the file.

#include <string>

#include "executor/config/files/schedule_file.hpp"
#include "rheo/plan/plan.hpp"

namespace rheo::inline v0 {

/// Reads plan.json. @throws exit_error naming the file and what was expected
plan read_plan_file(std::string const& path, schedule_finder const& find = find_schedule);

}  // namespace rheo::inline v0
