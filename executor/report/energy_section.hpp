#pragma once
// SPDX-License-Identifier: Apache-2.0

// The part of a run's page (report/run_page.hpp) that is about energy: what the ranks drew and at which clocks they computed,
// over the time of the run, so that recoveries and stragglers show.

#include "executor/records/run_folder.hpp"
#include "executor/report/blocks.hpp"

namespace rheo::inline v0 {

/// Empty when the run knows of no energy.
page_block energy_section(run_folder const& run);

}  // namespace rheo::inline v0
