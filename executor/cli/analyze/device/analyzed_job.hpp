#pragma once
// SPDX-License-Identifier: Apache-2.0

// What `rheo analyze` has read and found, in the forms in which it says so.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/cli/analyze/document.hpp"
#include "rheo/analyze/device/analysis.hpp"
#include "rheo/analyze/device/rank_trace.hpp"

namespace rheo::cli {

struct analyzed_job {
    std::vector<std::string> files;  ///< of the traces, in their order, which is that of the ranks
    std::vector<rank_trace> traces;
    std::int64_t left_out = 0;  ///< events without a time
    job_analysis analysis;
};

/// Reads a trace per rank. @throws exit_error
analyzed_job analyze_files(std::vector<std::string> const& files);

/// Reads a set of Chakra execution traces with times. @throws exit_error
analyzed_job analyze_prefix(std::string const& prefix);

/// What the ranks wait for most, in one line.
std::string answer_of(analyzed_job const& job);

/// The answer and tables. @param most rows of a table: of more, those that matter most
analysis_document document_of(analyzed_job const& job, std::size_t most);

std::string title_of(analyzed_job const& job);

std::string json_of(analyzed_job const& job);

/// A row for each rank.
std::string csv_of(analyzed_job const& job);

}  // namespace rheo::cli
