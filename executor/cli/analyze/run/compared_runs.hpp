#pragma once
// SPDX-License-Identifier: Apache-2.0

// Two runs beside each other: what a step of the second takes more of than one of the first, by class and by rank.

#include <cstddef>
#include <string>

#include "executor/cli/analyze/document.hpp"
#include "executor/cli/analyze/run/analyzed_run.hpp"

namespace rheo::cli {

struct compared_runs {
    analyzed_run before;
    analyzed_run after;
};

/// By how much a step is longer, and what grew most, in one line.
std::string answer_of(compared_runs const& runs);

/// @param most rows of a table: of more, those that grew most
analysis_document document_of(compared_runs const& runs, std::size_t most);

std::string title_of(compared_runs const& runs);

std::string json_of(compared_runs const& runs);

/// A row for each class of each rank that is in both.
std::string csv_of(compared_runs const& runs);

}  // namespace rheo::cli
