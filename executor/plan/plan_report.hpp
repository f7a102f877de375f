#pragma once
// SPDX-License-Identifier: Apache-2.0

// A plan for people: templates, what each number of ranks would run, who holds what and how much, the schedule drawn, what was
// checked, and what each loss would lead to. Only what the library computes; nothing is measured.

#include <string>

#include "executor/config/config.hpp"
#include "rheo/model/model.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/forecast.hpp"

namespace rheo::inline v0 {

/// The compute programs of all pipelines, at unit costs.
std::string drawing_of(plan const& p);

/// How the job continues after the loss of this rank, as a sentence: the plan that the survivors make.
std::string after_loss_of(rank_id lost, plan const& p, model_description const& model, run_config const& config);

/// All of it. @param f make_forecast() of the same plan, model and config
std::string format_plan(plan const& p, model_description const& model, run_config const& config, forecast const& f);

}  // namespace rheo::inline v0
