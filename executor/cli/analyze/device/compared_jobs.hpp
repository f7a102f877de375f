#pragma once
// SPDX-License-Identifier: Apache-2.0

// Two sets of traces beside each other: what the ranks of the second have more of than those of the first, by class of their time.

#include <cstddef>
#include <string>

#include "executor/cli/analyze/device/analyzed_job.hpp"
#include "executor/cli/analyze/document.hpp"

namespace rheo::cli {

struct compared_jobs {
    analyzed_job before;
    analyzed_job after;
};

/// How much longer the longest span is, and what grew most, in one line.
std::string answer_of(compared_jobs const& jobs);

/// @param most rows of a table: of more, those that changed most
analysis_document document_of(compared_jobs const& jobs, std::size_t most);

std::string title_of(compared_jobs const& jobs);

std::string json_of(compared_jobs const& jobs);

/// A row for each class of each rank that is in both.
std::string csv_of(compared_jobs const& jobs);

}  // namespace rheo::cli
