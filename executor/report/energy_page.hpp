#pragma once
// SPDX-License-Identifier: Apache-2.0

// The part of a run's page (executor/report/html_report.hpp) that is about energy: what the ranks drew and at which clocks they computed,
// over the time of the run, so that recoveries and stragglers show.

#include <string>

#include "executor/records/run_folder.hpp"

namespace rheo::inline v0 {

/// The section as HTML; empty when the run knows of no energy.
std::string energy_section(run_folder const& run);

}  // namespace rheo::inline v0
