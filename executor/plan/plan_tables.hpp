#pragma once
// SPDX-License-Identifier: Apache-2.0

// The tables and sentences of a plan's report (plan_report.hpp): templates, what numbers of ranks run, what losses lead to. Each says where its times come from.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rheo/pipeline/instance.hpp"
#include "rheo/pipeline/makespan_templates.hpp"
#include "rheo/planner/forecast.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// "2 pipelines of 2 + 3 ranks", "1250 pipelines of 8 ranks"
std::string format_sizes(std::vector<pipeline_instance> const& pipelines);

/// "as modelled", or from which file.
std::string source_of(forecast const& f);

/// "8.419 ms"; "not modelled" where there is none.
std::string format_step(std::optional<seconds> step);

/// A line for each template. @param counted_in ranks or nodes  @param each microbatches of a pipeline, whose makespan is shown  @param microbatches of a step
std::string format_templates(std::span<makespan_template const> made, std::string counted_in, int each, int microbatches);

/// A line for each number of ranks; where the loss of one rank leads to something else than the line of one less, that line says so.
std::string format_instantiations(forecast const& f);

/// How the job continues after a loss, or why it cannot.
std::string message_of(loss_outcome const& outcome);

/// A line for the loss of each rank and of each node.
std::string format_outcomes(forecast const& f);

/// What losses of two ranks lead to, counted.
std::string format_pairs(pair_outcomes const& all);

}  // namespace rheo::inline v0
