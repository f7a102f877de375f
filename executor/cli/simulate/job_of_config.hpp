#pragma once
// SPDX-License-Identifier: Apache-2.0

// The job that a config describes, on a described cluster.

#include <optional>

#include "executor/config/config.hpp"
#include "rheo/job/job_clocks.hpp"
#include "rheo/job/simulated_job.hpp"
#include "rheo/units/result.hpp"

namespace rheo::cli {

/// As planning counts by default: messages of processes of one machine, memory without a limit.
cluster_model one_machine(int ranks);

/// The ranks that plan.pipelines and plan.spares name; 0: none.
int named_ranks(run_config const& config);

/// With steps and checkpoints of the config. @pre check_ranks(config, ranks) found nothing. @returns why planning cannot begin
result<job_description> job_of_config(run_config const& config, cluster_model cluster, int ranks);

/// What power.clock_profile says of the layers of the job; none where the config has no profile. @returns why it cannot be read
result<std::optional<job_clocks>> clocks_of(run_config const& config, job_description const& job);

}  // namespace rheo::cli
