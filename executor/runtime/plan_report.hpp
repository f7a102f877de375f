#pragma once
// SPDX-License-Identifier: Apache-2.0

// A plan for people: who holds what and how much, the schedule drawn, what was checked, and what the loss
// of each single rank would lead to. Only what the library computes; nothing is measured.

#include <string>

#include "rheo/model/model.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/units/units.hpp"
#include "runtime/config.hpp"

namespace rheo::inline v0 {

/// Bytes that a rank needs: its tensors with moments, accumulators and reduced gradients, and the
/// activations of the microbatches that the schedule keeps in flight on it. Zero for a spare.
bytes memory_of(plan const& p, model_description const& model, microbatch_shape shape, rank_id rank);

/// The compute programs of all pipelines, at unit costs.
std::string drawing_of(plan const& p);

/// What goes on after the loss of this one rank, as a sentence.
std::string after_loss_of(rank_id lost, plan const& p, model_description const& model, run_config const& config);

/// All of it. @pre the plan can be run: why_not says nothing
std::string plan_for_people(plan const& p, model_description const& model, run_config const& config);

}  // namespace rheo::inline v0
