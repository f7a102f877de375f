#pragma once
// SPDX-License-Identifier: Apache-2.0

// A plan for people: templates, what each number of ranks would run, who holds what and how much, the schedule drawn, what was
// checked, and what each loss would lead to. Only what the library computes; nothing is measured.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rheo/model/model.hpp"
#include "rheo/partition/layer_profile.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/units/units.hpp"
#include "runtime/config.hpp"

namespace rheo::inline v0 {

/// Position -> the bytes of activations that the rank there holds at most while the pipeline does its part of the plan.
std::vector<bytes> peaks_of_activations(plan const& p, model_description const& model, microbatch_shape shape, pipeline_id which);

/// Bytes that a rank needs: its tensors with moments, accumulators and reduced gradients, and the
/// activations of the microbatches that the schedule keeps in flight on it. Zero for a spare.
bytes memory_of(plan const& p, model_description const& model, microbatch_shape shape, rank_id rank);

/// The compute programs of all pipelines, at unit costs.
std::string drawing_of(plan const& p);

/// What goes on after the loss of these ranks at once, as a sentence: the plan that the survivors make. @param known what_ranks_know of the run
std::string after_loss_of(std::span<rank_id const> lost, plan const& p, replanning const& known, membership_rules rules = {});
std::string after_loss_of(rank_id lost, plan const& p, model_description const& model, run_config const& config);

/// What each number of ranks up to so many would run: pipelines, shares, time as modelled.
std::string instantiations_for_people(replanning const& known, int ranks);

/// What more is asked of a plan for people.
struct plan_report_options {
    int node_size = 1;                     ///< ranks of a node, numbered through: above 1 the losses of whole nodes, and stages of several devices
    std::vector<layer_profile> layers{};   ///< measured, as parse_layer_profile reads them, for the templates; none: as modelled
    std::optional<bytes> device_memory{};  ///< of one rank: templates keep within it and say how many microbatches fit
};

/// All of it. @pre the plan can be run: why_not says nothing; measured layers are as many as the model's, and say what sharing between the
/// devices of a node takes
std::string plan_for_people(plan const& p, model_description const& model, run_config const& config, plan_report_options const& options = {});

}  // namespace rheo::inline v0
