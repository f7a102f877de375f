#pragma once
// SPDX-License-Identifier: Apache-2.0

// Simulated jobs side by side, as a table for people or as JSON.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rheo/job/simulated_job.hpp"
#include "rheo/trace/event.hpp"

namespace rheo::cli {

/// Steps that are alike, one behind the other.
struct step_run {
    whole_nanoseconds begin;
    whole_nanoseconds end;
    whole_nanoseconds step;  ///< time of one
    joules energy;           ///< of one
    std::size_t ranks;       ///< that are present
    bytes fullest;           ///< what the fullest rank holds
};

/// Events of two steps.
struct steps_around {
    std::vector<trace_event> before{};
    std::vector<trace_event> after{};
};

struct named_job {
    std::string policy;
    simulated_job job;
    std::vector<step_run> runs{};  ///< where a picture is asked for
    steps_around around{};         ///< the first loss, where a page is asked for
};

struct job_report {
    job_description const* described;
    std::string cluster;  ///< what it is called
    std::vector<named_job> jobs;
};

std::int64_t tokens_per_step(job_description const& job);

/// "64 ranks on cluster.toml, 5000 steps of 524288 tokens".
std::string headline_of(job_report const& report);

/// The accounts of each policy.
std::string accounts_text(job_report const& report);

/// At most so many changes of the members.
std::string changes_text(simulated_job const& job, std::size_t most);

/// One screen: what the job was, the accounts of each policy, and what changed.
std::string to_text(job_report const& report);

std::string to_json(job_report const& report);

}  // namespace rheo::cli
