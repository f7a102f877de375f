#pragma once
// SPDX-License-Identifier: Apache-2.0

// What is seen of a job while it runs, by its run folder.

#include <filesystem>
#include <vector>

#include <sys/types.h>

#include "driver.hpp"

namespace campaign {

/// Waits until all ranks are in the run folder, that is: begin to train. Their processes, by rank.
std::vector<pid_t> ranks_of(trial& run);

/// The attempts that are in the job's metrics.
int attempts_of(std::filesystem::path const& run_folder);

}  // namespace campaign
