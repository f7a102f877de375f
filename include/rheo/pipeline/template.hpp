#pragma once
// SPDX-License-Identifier: Apache-2.0

// A pipeline template (Oobleck, SOSP'23, section 4.1): how a pipeline of a certain size cuts the model. It
// is prepared before anything fails; a loss only chooses among templates. As a type it names model, cuts and schedule;
// as a value it has the cuts and what planning needs to compare it: its cost.

#include <vector>

#include "rheo/partition/cuts.hpp"
#include "rheo/pipeline/cost.hpp"
#include "rheo/topology/index.hpp"

namespace rheo::inline v0 {

struct template_value {
    std::vector<layer_id> cuts;
    pipeline_cost cost;

    friend constexpr bool operator==(template_value const&, template_value const&) = default;
};

/// The number of ranks that an instance of the template takes: one per stage.
constexpr int size(template_value const& shape) { return stage_count(shape.cuts); }

}  // namespace rheo::inline v0
