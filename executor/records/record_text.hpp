#pragma once
// SPDX-License-Identifier: Apache-2.0

// Records as text for people. Pure functions: what a test can compare.

#include <span>
#include <string>

#include "executor/records/records.hpp"

namespace rheo::inline v0 {

/// "1.2345", or "not finite".
std::string loss_text(double loss);

/// What was lost, what continues, what was kept, in one line.
std::string recovery_line(recovery_record const& record);

/// `checkpoint of step 80: 12.3 MiB in 45 ms (273 MiB/s)`
std::string checkpoint_line(checkpoint_record const& record);
/// `step 80 is safe on node-local storage: 12.3 MiB in 45 ms (273 MiB/s)`
std::string level_line(level_record const& record);

/// How it ended, the phases of every recovery in milliseconds, what was salvaged, digest, sample.
std::string final_table(final_record const& record, std::span<recovery_record const> recoveries);

}  // namespace rheo::inline v0
