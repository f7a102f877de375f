#pragma once
// SPDX-License-Identifier: Apache-2.0

// The schedule that a config or a plan names: a family, or a file in PyTorch's text form, which is read once and kept for the
// life of the process. All ranks read the same file.

#include <optional>
#include <string>

#include "executor/config/config.hpp"
#include "rheo/schedule/families/families.hpp"

namespace rheo::inline v0 {

/// The schedule of that name, or why there is none: unknown, not readable, wrong in a row and cell, or not for ranks to run.
parsed_schedule find_schedule(std::string const& name);

/// The schedule of a config: its own, or the one that it names.
parsed_schedule schedule_of(plan_config const& config);

/// What a plan has to be told besides the name: the schedule, where it is none of the families.
std::optional<any_schedule> own_schedule(plan_config const& config);

}  // namespace rheo::inline v0
