#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan with which a job begins: templates for every size that may be needed, sizes as the config says or
// as the library chooses them, ranks in their order. A pure function of model, config and number of ranks,
// so every rank makes the same plan; `rheo plan` shows what `rheo train` will run.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rheo/model/model.hpp"
#include "rheo/partition/layer_profile.hpp"
#include "rheo/pipeline/makespan_templates.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/topology/link.hpp"
#include "rheo/units/units.hpp"
#include "runtime/config.hpp"

namespace rheo::inline v0 {

/// Messages between ranks, as planning models them: processes of one machine.
inline constexpr modelled_link link_between_ranks{{10e-6}, {5e9}};

/// Forward and backward time of each layer per microbatch, from its floating-point operations. Only
/// ratios count: no measurement enters, or ranks could plan differently.
std::vector<seconds> modelled_layer_times(model_description const& model, microbatch_shape shape);

/// The layers as modelled on nodes of so many devices, which are processes of one machine: of times only ratios count, bytes are those that ranks allocate.
/// @param pipelines that hold each layer, one or more
std::vector<layer_profile> modelled_layers(model_description const& model, run_config const& config, int devices_per_node = 1, int pipelines = 2);

/// The microbatches of a step that a pipeline runs, of those asked for or of as many as are wanted, when all run as many; rounded up.
int even_share(run_config const& config);

/// Templates of 1 .. devices_per_node devices per stage for so many nodes, as far as there are layers: cuts with the least makespan
/// of plan.schedule at an even share of the microbatches. @param device_memory of one device; none: not looked at
std::vector<makespan_template> templates_for(std::span<layer_profile const> layers, run_config const& config, size_range nodes, int devices_per_node = 1,
                                             std::optional<bytes> device_memory = {});

/// A template for every size from plan.min_ranks (and the smallest of plan.pipelines) to as many ranks as there
/// are, or layers.
template_set_value ready_templates(model_description const& model, run_config const& config, int ranks);

/// Pipelines of these sizes with ranks 0, 1, ... in their order. @pre there is a template of each size
std::vector<pipeline_instance> pipelines_of_sizes(template_set_value const& ready, std::span<int const> sizes);

struct first_plan {
    plan what;
    seconds time{};         ///< modelled, of a step
    bool degraded = false;  ///< fewer than plan.failures + 1 pipelines
    std::string cannot{};   ///< why there is no plan; exit code 3

    explicit operator bool() const { return cannot.empty(); }
};

/// The plan for ranks 0 .. ranks-1, the last plan.spares of them without a place. Where the loss of plan.failures nodes would lose state, pipelines of
/// the planner's choice are made of whole nodes, and ranks of those in plan.pipelines exchange places. @pre check(config) and check_ranks(config, ranks) found nothing, ranks >= 1
first_plan make_first_plan(model_description const& model, run_config const& config, int ranks);

/// How many stages a rank has at most in pipelines of the config's schedule, those of both copies of the model counted. @pre it is known
int stages_per_rank(plan_config const& config, int ranks);

/// Marks what the plan computes again. Where the config says "auto": on each rank over plan.memory_mib the stages that free most, until
/// it fits; all that free something where it never does. Where it says "selective": as little of its layers as plan_memory finds.
void choose_recomputation(plan& p, model_description const& model, run_config const& config);

/// plan.memory_mib; none when it is 0.
std::optional<bytes> memory_limit(run_config const& config);

/// What ranks are told about nodes and ranks that wait.
membership_rules rules_of(run_config const& config);

/// What every rank keeps to plan again after a loss. @param ranks at launch
replanning what_ranks_know(model_description const& model, collection const& state, run_config const& config, int ranks);

/// Why a plan, read from a file, cannot be run: wrong cuts, a rank twice or out of range, microbatches missing; else empty.
std::string why_not(plan const& p, model_description const& model, run_config const& config, int ranks);

}  // namespace rheo::inline v0
