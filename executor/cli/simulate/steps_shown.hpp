#pragma once
// SPDX-License-Identifier: Apache-2.0

// The steps that `rheo simulate --chrome` shows, and their trace as a file.

#include <cstdint>
#include <string>

#include "rheo/job/job_trace.hpp"

namespace rheo::cli {

/// @param text "40..43" or "40"; empty: the first two  @param steps of the job
/// @throws exit_error when it is no range of the job's steps
shown_steps steps_shown(std::string const& text, std::int64_t steps);

/// @throws exit_error when nothing was shown, as the job ended before
void write_trace(std::string const& path, job_trace<> const& trace, shown_steps shown);

}  // namespace rheo::cli
