#pragma once
// SPDX-License-Identifier: Apache-2.0

// The templates that a job has ready: its layers as planning sees them, in times as modelled or of a profile and bytes that ranks allocate, and the best
// cuts of them for every size of a pipeline that may be needed. Pure functions of model and config, so that every rank has the same.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/config/config.hpp"
#include "rheo/model/model.hpp"
#include "rheo/partition/layer_profile.hpp"
#include "rheo/pipeline/makespan_templates.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/topology/link.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Messages between ranks, as planning models them: processes of one machine.
inline constexpr modelled_link link_between_ranks{{10e-6}, {5e9}};

/// The layers as planning sees them, on nodes of so many devices. Times are those of plan.layer_profile, which all ranks read, or as modelled for processes of
/// one machine, where only ratios count. No other measurement enters, or ranks could plan differently. Bytes are those that ranks allocate.
/// @param pipelines that hold each layer, one or more
/// @pre layer_profile_error finds nothing
std::vector<layer_profile> planned_layers(model_description const& model, run_config const& config, int devices_per_node = 1, int pipelines = 2);

/// Why plan.layer_profile is none of this model's layers; empty when it is, or when there is none.
std::string layer_profile_error(model_description const& model, run_config const& config);

/// plan.memory_mib; none when it is 0.
std::optional<bytes> memory_limit(run_config const& config);

/// The microbatches of a step that a pipeline runs, of those asked for or of as many as are wanted, when all run as many; rounded up.
int even_share(run_config const& config);

/// Templates of 1 .. devices_per_node devices per stage for so many nodes, as far as there are layers: cuts with the least makespan
/// of plan.schedule at an even share of the microbatches. @param device_memory of one device; none: not looked at
std::vector<makespan_template> templates_for(std::span<layer_profile const> layers, run_config const& config, size_range nodes, int devices_per_node = 1,
                                             std::optional<bytes> device_memory = {});

/// A template for every size from plan.min_ranks (and the smallest of plan.pipelines) to as many ranks as there
/// are, or layers. @param device_memory of a rank; none: not looked at @param pipelines that hold each layer, one or more
template_set_value ready_templates(model_description const& model, run_config const& config, int ranks, std::optional<bytes> device_memory, int pipelines = 2);

}  // namespace rheo::inline v0
