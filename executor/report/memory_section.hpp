#pragma once
// SPDX-License-Identifier: Apache-2.0

// The part of a run's page (report/run_page.hpp) about memory: planned and measured of the same tensors side by side, and the whole process for itself,
// which has libraries and data besides.

#include <optional>

#include "executor/records/run_folder.hpp"
#include "executor/report/blocks.hpp"
#include "rheo/model/model.hpp"

namespace rheo::inline v0 {

/// @param model that the first plan is for; none: not known
page_block memory_section(run_folder const& run, std::optional<model_description> const& model);

}  // namespace rheo::inline v0
