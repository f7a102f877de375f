#pragma once
// SPDX-License-Identifier: Apache-2.0

// Simulated jobs as a picture: the charts of their page, one below the other.

#include <string>
#include <string_view>

#include "executor/cli/simulate/job_report.hpp"

namespace rheo::cli {

/// As SVG. @param config what it is called
std::string job_picture(job_report const& report, std::string_view config);

}  // namespace rheo::cli
