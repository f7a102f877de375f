#pragma once
// SPDX-License-Identifier: Apache-2.0

// The bound of a change of the plan: the fewest bytes that any assignment of the ranks to the new places copies.

#include <optional>
#include <string>
#include <vector>

#include "rheo/units/units.hpp"

/// The bound is the dual value of the assignment problem, so no plan goes below it. @param config path of the job's config, with these settings
/// @param change as plan.changes has it, without a step; none where the planner refuses the change
std::optional<rheo::bytes> least_copied(std::string const& config, std::vector<std::string> const& settings, std::string const& change, int ranks);
