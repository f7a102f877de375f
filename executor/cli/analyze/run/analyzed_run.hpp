#pragma once
// SPDX-License-Identifier: Apache-2.0

// What `rheo analyze` has read and found of a run of rheo, in the forms in which it says so.

#include <cstddef>
#include <string>
#include <vector>

#include "executor/cli/analyze/document.hpp"
#include "executor/records/run_folder.hpp"
#include "rheo/analyze/step/run_analysis.hpp"
#include "rheo/analyze/step/slow_ranks.hpp"

namespace rheo::cli {

struct analyzed_run {
    std::string folder;
    run_folder run;
    seconds clocks_apart;  ///< of the hosts, before they were aligned
    recorded_run steps;    ///< of its events
    run_analysis analysis;
    std::vector<seconds> layer_times;  ///< by kind of layer, forwards and backwards; empty: not known
    std::vector<rank_pace> paces;
    std::vector<finding> findings;  ///< the most expensive first
};

/// Kinds of the model's layers: equal layers are of one.
std::vector<int> layer_kinds(model_description const& model);

/// Reads the run folder and analyzes its steps. @throws exit_error when it is none, or has no steps in its traces
analyzed_run analyze_run_folder(std::string const& folder);

/// The step of a plan at the rates of a run. @throws exit_error when it is no plan for the run's model
analyzed_run planned_run(std::string const& path, analyzed_run const& measured);

/// What a run's time is lost to, where it is worth a word. @pre all else is known
std::vector<finding> findings_of(analyzed_run const& job);

/// The most expensive finding in one line, or that there is none.
std::string answer_of(analyzed_run const& job);

/// All that there is to say. @param most rows of a table: of more, those that matter most
analysis_document document_of(analyzed_run const& job, std::size_t most);

std::string title_of(analyzed_run const& job);

std::string json_of(analyzed_run const& job);

/// A row for each rank.
std::string csv_of(analyzed_run const& job);

}  // namespace rheo::cli
