#pragma once
// SPDX-License-Identifier: Apache-2.0

// From the name of a schedule in a config or plan.json to the schedule, which everything else carries as a value. The name is that of a family,
// or of a file in PyTorch's text form, which is read once and stays in memory until the process ends. All ranks read the same file.

#include <functional>
#include <string>

#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// The schedule of that name, or why there is none: unknown, not readable, wrong in a row and cell, or not for ranks to run.
result<any_schedule> find_schedule(std::string const& name);

/// The same, but a name that is not known gives a schedule with nothing but this name: reports need no more.
result<any_schedule> find_schedule_or_name(std::string const& name);

/// plan.schedule = "auto": the planner chooses the family. A name alone; the plan that is made has a schedule.
any_schedule automatic_schedule();

/// How readers of files find schedules. A program with a schedule of its own type passes one that knows its name, too.
using schedule_finder = std::function<result<any_schedule>(std::string const& name)>;

}  // namespace rheo::inline v0
