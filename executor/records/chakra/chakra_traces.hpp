#pragma once
// SPDX-License-Identifier: Apache-2.0

// The execution traces of a job as files: PREFIX.0.et, PREFIX.1.et, ... and, where ranks meet in groups, PREFIX.groups.json.

#include <cstdint>
#include <string>
#include <vector>

#include "rheo/trace/chakra/trace_set.hpp"

namespace rheo::inline v0 {

/// PREFIX.RANK.et
std::string chakra_file(std::string const& prefix, std::int32_t rank);

/// How many files there are, from that of rank 0 on. @throws exit_error (bad data) when there is none
std::int32_t chakra_ranks(std::string const& prefix);

/// The groups of PREFIX.groups.json, by name; none where there is no such file. @throws exit_error (bad data)
std::vector<chakra_group> read_chakra_groups(std::string const& prefix, std::int32_t ranks);

/// Writes PREFIX.groups.json; where there are no groups, one that is there is removed. @throws exit_error (environment)
void write_chakra_groups(std::string const& prefix, std::vector<chakra_group> const& groups);

/// All files of a job, each under the contract of consumers. @throws exit_error (bad data) with the file and what is wrong
chakra_trace_set read_chakra_traces(std::string const& prefix);

/// Traces from any tool, and what was noticed while reading.
struct lenient_job {
    chakra_trace_set traces;
    std::uint64_t absent_controls = 0;  ///< control dependencies on nodes that are not there
};

/// All files of a job, as far as they can be played (rheo/trace/chakra/lenient.hpp). Groups are those of PREFIX.groups.json, else those that
/// nodes named "## process_group:init ##" list, as PyTorch records them. @throws exit_error (bad data) with the file and what is wrong
lenient_job read_any_chakra_traces(std::string const& prefix, bool keeps_order);

}  // namespace rheo::inline v0
