#pragma once
// SPDX-License-Identifier: Apache-2.0

// A run folder as one page: what was trained and how it ended, loss and tokens per second over the steps with every recovery marked, a step as planned and
// as measured, the time line of each recovery, power and clocks, memory per rank. Everything on it is read from the folder; what is not there
// (a run without a trace, one that was killed) is left out with a sentence.

#include <optional>
#include <string>
#include <vector>

#include "executor/records/run_folder.hpp"
#include "executor/report/blocks.hpp"
#include "rheo/model/model.hpp"

namespace rheo::inline v0 {

/// The data of the page of the run in this folder (page_of makes the page).
/// @throws exit_error when the folder holds no run; exit_error, exit_error for what it holds
page_block run_page(std::string const& folder);

// ---- parts, which the page over several runs has, too ------------------------------------------------------

/// A value of these records over the steps, counted from 1. Where the job went back to a checkpoint, the repeated steps take the place of the earlier ones.
curve curve_of(std::vector<nlohmann::json const*> const& records, char const* value, std::string name);

/// "done: all 4 steps are committed (exit code 0)", or that there is no report.
std::string ending_of(run_folder const& run);

/// A number of a record; NaN where it is none.
double number_of(nlohmann::json const& record, char const* key);

/// From the loss to the first instruction, of all recoveries.
seconds time_in_recoveries(run_folder const& run);

/// The model of the config, when the first plan is for it: a program may have trained one of its own.
std::optional<model_description> model_of(run_folder const& run);

}  // namespace rheo::inline v0
