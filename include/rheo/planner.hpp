#pragma once
// SPDX-License-Identifier: Apache-2.0

// Planning of a whole job: the plan that it begins with, what losses lead to, and clocks chosen together with templates.

#include "rheo/planner/changed_plan.hpp"
#include "rheo/planner/contingency_plans.hpp"
#include "rheo/planner/forecast.hpp"
#include "rheo/planner/group_prices.hpp"
#include "rheo/planner/initial_plan.hpp"
#include "rheo/planner/job_templates.hpp"
#include "rheo/planner/make_forecast.hpp"
#include "rheo/planner/make_plan.hpp"
#include "rheo/planner/make_plan_on.hpp"
#include "rheo/planner/make_replanning.hpp"
#include "rheo/planner/pipelines_and_clocks.hpp"
#include "rheo/planner/plan_clocks.hpp"
#include "rheo/planner/plan_error.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/planner/recompute_choice.hpp"
#include "rheo/planner/recompute_policy.hpp"
#include "rheo/planner/step_limits.hpp"
#include "rheo/planner/step_parts.hpp"
#include "rheo/planner/templates_and_clocks.hpp"
#include "rheo/planner/tensor_degrees.hpp"
