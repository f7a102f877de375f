#pragma once
// SPDX-License-Identifier: Apache-2.0

// Choices that belong together: templates and clocks.

#include "rheo/planner/pipelines_and_clocks.hpp"
#include "rheo/planner/plan_clocks.hpp"
#include "rheo/planner/templates_and_clocks.hpp"
