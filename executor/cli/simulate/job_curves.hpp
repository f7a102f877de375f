#pragma once
// SPDX-License-Identifier: Apache-2.0

// What is drawn of simulated jobs over time, on their page and as a picture.

#include <vector>

#include "executor/cli/simulate/job_report.hpp"
#include "executor/report/blocks.hpp"

namespace rheo::cli {

/// Tokens per second, the accounts of each job as bands, power, ranks and memory. Changes of the members of the first job are marked.
std::vector<curve_chart> curves_of(job_report const& report);

}  // namespace rheo::cli
