#pragma once
// SPDX-License-Identifier: Apache-2.0

// A run folder as one page that needs no network: what was trained and how it ended, loss and tokens per
// second over the steps with every recovery marked, a step as planned and as measured, the time line
// of each recovery, memory per rank. Everything on it is read from the folder; what is not there
// (a run without a trace, one that was killed) is left out with a sentence.

#include <string>

namespace rheo::inline v0 {

/// The page of the run in this folder. @throws records_error when the folder holds no run; unreadable_record, config_error for what it holds
std::string html_report(std::string const& folder);

/// Writes the page to a file, whole or not at all. @throws what html_report throws; records_error when it cannot be written
void write_html_report(std::string const& folder, std::string const& file);

}  // namespace rheo::inline v0
