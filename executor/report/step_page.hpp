#pragma once
// SPDX-License-Identifier: Apache-2.0

// The part of a run's page (executor/report/html_report.hpp) that shows a step: as it was planned and as it was measured, beside each other
// on axes of equal length, so that what took longer than planned shows.

#include <optional>
#include <string>

#include "executor/records/run_folder.hpp"
#include "rheo/model/model.hpp"

namespace rheo::inline v0 {

/// The section as HTML. @param model that the plan is for; none: not known
std::string step_section(run_folder const& run, std::optional<model_description> const& model);

}  // namespace rheo::inline v0
