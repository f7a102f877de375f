#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan with which a job begins: pipelines of templates (job_templates.hpp) in sizes as the config says or as the library chooses them, ranks in
// their order, and what is recomputed; and what ranks keep to plan again. A pure function of model, config and number of ranks, so every
// rank makes the same plan; `rheo plan` shows what `rheo train` will run.

#include <span>
#include <string>
#include <vector>

#include "executor/config/config.hpp"
#include "rheo/model/model.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Pipelines of these sizes with ranks 0, 1, ... in their order. @pre there is a template of each size
std::vector<pipeline_instance> pipelines_of_sizes(template_set_value const& ready, std::span<int const> sizes);

struct first_plan {
    plan what;
    seconds time{};         ///< modelled, of a step
    bool degraded = false;  ///< fewer than plan.failures + 1 pipelines
    std::string error{};   ///< why there is no plan; exit code 3

    explicit operator bool() const { return error.empty(); }
};

/// The plan for ranks 0 .. ranks-1, the last plan.spares of them without a place. Where the loss of plan.failures nodes would lose state, pipelines of
/// the planner's choice are made of whole nodes, and ranks of those in plan.pipelines exchange places. @pre check(config) and check_ranks(config, ranks) found nothing, ranks >= 1
first_plan make_first_plan(model_description const& model, run_config const& config, int ranks);

/// How many stages a rank has at most in pipelines of the config's schedule, those of both copies of the model counted. @pre it is known
int stages_per_rank(plan_config const& config, int ranks);

/// Marks what the plan computes again. Where the config says "auto": on each rank over plan.memory_mib the stages that free most, until
/// it fits; all that free something where it never does. Where it says "selective": as little of its layers as plan_memory finds.
void choose_recomputation(plan& p, model_description const& model, run_config const& config);

/// Why a rank cannot do its part of the plan on a device that has so much free, for it and whoever shares the device; empty when it can.
/// @param kernels what they work in
std::string over_device(plan const& p, model_description const& model, run_config const& config, rank_id rank, bytes kernels, bytes free);

/// What ranks are told about nodes and ranks that wait.
membership_rules rules_of(run_config const& config);

/// What every rank keeps to plan again after a loss. @param ranks at launch
replanning what_ranks_know(model_description const& model, collection const& state, run_config const& config, int ranks);

/// Why a plan, read from a file, cannot be run: wrong cuts, a rank twice or out of range, microbatches missing; else empty.
std::string plan_error(plan const& p, model_description const& model, run_config const& config, int ranks);

}  // namespace rheo::inline v0
