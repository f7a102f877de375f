#pragma once
// SPDX-License-Identifier: Apache-2.0

// Simulated jobs as one page: accounts, curves over time with the changes of the members marked, a step before and one after the first loss, and the changes.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "executor/cli/simulate/job_report.hpp"
#include "rheo/job/job_trace.hpp"

namespace rheo::cli {

/// A step joins the run before it where it is like that.
void add_step(std::vector<step_run>& runs, whole_nanoseconds begin, played_plan const& account, std::size_t ranks);

/// The last whole step before a loss and the first one after it; empty where the trace lacks one.
steps_around steps_around_loss(job_trace<> const& trace, whole_nanoseconds loss);

/// One file that needs no network.
std::string job_page(job_report const& report, std::string_view config);

}  // namespace rheo::cli
