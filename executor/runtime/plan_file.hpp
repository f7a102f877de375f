#pragma once
// SPDX-License-Identifier: Apache-2.0

// A plan from a file: what rheo plan --json has printed, or a run has kept.

#include <string>

#include "rheo/plan/plan.hpp"

namespace rheo::inline v0 {

/// Reads plan.json. @throws config_error naming the file and what was expected
plan read_plan_file(std::string const& path);

}  // namespace rheo::inline v0
