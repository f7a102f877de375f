#pragma once
// SPDX-License-Identifier: Apache-2.0

// The part of a run's page (report/run_page.hpp) that shows a step: as it was planned and as it was measured, beside each other
// on axes of equal length, so that what took longer than planned shows.

#include <optional>

#include "executor/records/run_folder.hpp"
#include "executor/report/blocks.hpp"
#include "rheo/model/model.hpp"

namespace rheo::inline v0 {

/// @param model that the first plan is for; none: not known
page_block step_section(run_folder const& run, std::optional<model_description> const& model);

}  // namespace rheo::inline v0
