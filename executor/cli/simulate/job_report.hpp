#pragma once
// SPDX-License-Identifier: Apache-2.0

// Simulated jobs side by side, as a table for people or as JSON.

#include <string>
#include <vector>

#include "rheo/job/simulated_job.hpp"

namespace rheo::cli {

struct named_job {
    std::string policy;
    simulated_job job;
};

struct job_report {
    job_description const* described;
    std::string cluster;  ///< what it is called
    std::vector<named_job> jobs;
};

/// One screen: what the job was, the accounts of each policy, and what changed.
std::string to_text(job_report const& report);

std::string to_json(job_report const& report);

}  // namespace rheo::cli
