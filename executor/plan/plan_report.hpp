#pragma once
// SPDX-License-Identifier: Apache-2.0

// A plan for people: templates, what each number of ranks would run, who holds what and how much, the schedule drawn, what was
// checked, and what each loss would lead to. Only what the library computes; nothing is measured.

#include <string>
#include <vector>

#include "executor/config/config.hpp"
#include "executor/plan/forecast.hpp"
#include "rheo/model/model.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What the memory of the plan's ranks depends on besides.
memory_terms terms_in(plan const& p, run_config const& config);

/// Bytes of a rank's tensors with moments, what stages have of them, accumulators and reduced gradients; its activations come on top.
bytes state_bytes_of(plan const& p, model_description const& model, run_config const& config, rank_id rank);

/// Bytes of activations that a rank holds at most while it does its part of the plan: those in flight, gradients that it keeps, what it recomputes.
bytes activations_of(plan const& p, model_description const& model, run_config const& config, rank_id rank);

/// What a rank needs, part by part; nothing for a spare.
memory_parts memory_parts_of(plan const& p, model_description const& model, run_config const& config, rank_id rank);

/// Bytes that a rank needs: state_bytes_of, and the
/// activations of the microbatches that the schedule keeps in flight on it. What its backwards work in is not among them. Zero for a spare.
bytes memory_of(plan const& p, model_description const& model, run_config const& config, rank_id rank);

/// The compute programs of all pipelines, at unit costs.
std::string drawing_of(plan const& p);

/// What goes on after the loss of this rank, as a sentence: the plan that the survivors make.
std::string after_loss_of(rank_id lost, plan const& p, model_description const& model, run_config const& config);

/// All of it. @param what make_forecast() of the same plan, model and config
std::string format_plan(plan const& p, model_description const& model, run_config const& config, forecast const& what);

}  // namespace rheo::inline v0
