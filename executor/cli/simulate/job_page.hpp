#pragma once
// SPDX-License-Identifier: Apache-2.0

// Simulated jobs as one page: tokens per second, power and ranks over time with the changes of the members marked, accounts, and the changes.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "executor/cli/simulate/job_report.hpp"

namespace rheo::cli {

/// A step joins the run before it where it is like that.
void add_step(std::vector<step_run>& runs, whole_nanoseconds begin, played_plan const& account, std::size_t ranks);

/// One file that needs no network.
std::string job_page(job_report const& report, std::string_view config);

}  // namespace rheo::cli
