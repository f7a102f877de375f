#pragma once
// SPDX-License-Identifier: Apache-2.0

// The library's planner for a config: the functions of include/rheo/planner, which take a planning_request, by the same names for a run_config. The
// config becomes a request here and nowhere else; the planner is compiled here once for all of the executor.

#include <string>
#include <vector>

#include "executor/config/config.hpp"
#include "rheo/model/model.hpp"
#include "rheo/partition/layer_profile.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/forecast.hpp"
#include "rheo/planner/group_sharing.hpp"
#include "rheo/planner/initial_plan.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/planner/step_limits.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What the config says of planning, or why plan.cluster cannot be read, or plan.layer_profile is no profile of this model's layers.
/// @pre check(config) found nothing
result<planning_request> planning_request_of(model_description const& model, run_config const& config);

/// Why plan.layer_profile is no profile of this model's layers; empty when it is, or when there is none.
std::string layer_profile_error(model_description const& model, run_config const& config);

/// @pre check_ranks(config, ranks) found nothing, ranks >= 1  @returns an error of the profile, too
result<initial_plan> make_plan(model_description const& model, run_config const& config, int ranks);

/// Sets plan.schedule and plan.tensor to those of the plan if the planner chose them, plan.tensor also if the plan came from a file.
void settle_choices(run_config& config, plan const& p);

/// What bounds the step of a plan that make_plan returned for this config and so many ranks.
step_limits limits_of_step(plan const& p, model_description const& model, run_config const& config, int ranks);

/// Why a plan cannot be run; empty when it can.
std::string plan_error(plan const& p, model_description const& model, run_config const& config, int ranks);

/// Why a rank cannot do its part of the plan on a device that has so much free, for it and whatever else uses the device; empty when it can.
/// @param kernels what they work in
std::string over_device(plan const& p, model_description const& model, run_config const& config, rank_id rank, bytes kernels, bytes free);

/// @param path of the plan, @param whose what the model is named after: a config or a run folder
/// @throws exit_error (bad data) when the plan does not fit the model or its whole steps. It may lack ranks, as a plan after a loss does.
void expect_step_plan(plan const& p, model_description const& model, run_config const& config, std::string const& path, std::string const& whose);

void choose_recomputation(plan& p, model_description const& model, run_config const& config);

memory_parts memory_parts_of(plan const& p, model_description const& model, run_config const& config, rank_id rank);

/// @pre layer_profile_error found nothing: of this function and those below
std::vector<layer_profile> planned_layers(model_description const& model, run_config const& config);

/// The memory of a rank for changes of places: plan.memory_mib, and what each tensor takes.
in_place_memory in_place_memory_of(model_description const& model, run_config const& config, replanning const& known);

/// What clocks of groups follow from besides the clock profile.
group_exchanges group_exchanges_of(model_description const& model, run_config const& config);

replanning make_replanning(model_description const& model, run_config const& config, int ranks);

membership_rules membership_rules_of(run_config const& config);

/// A running job after a change of its plan.
struct changed_job {
    run_config config;
    plan first;
    replanning known;
};

/// Plans the job anew with this config, for the ranks that stay, so that the fewest bytes move. @param in_force the plan so far
/// @returns an error if these ranks cannot run it
result<changed_job> change_plan(model_description const& model, run_config config, membership_plan const& in_force, std::vector<rank_id> const& staying);

/// @pre plan_error found nothing
forecast make_forecast(plan const& p, model_description const& model, run_config const& config, forecast_options const& options = {});

/// How many stages a rank has at most in pipelines of the config's schedule, those of both copies of the model counted.
int stages_per_rank(plan_config const& config, int ranks);

}  // namespace rheo::inline v0
