#pragma once
// SPDX-License-Identifier: Apache-2.0

// Templates made at run time: for every size of a range the exactly optimal cuts.

#include <span>

#include "rheo/pipeline/template_set.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct size_range {
    int from;
    int to;  ///< inclusive

    friend constexpr bool operator==(size_range, size_range) = default;
};

/// One template for each size of the range that the model has layers for: cuts that minimise the slowest stage, ties to the
/// lexicographically smallest. `layer_costs` is forward and backward time per microbatch.
/// @pre 1 <= from <= to
constexpr template_set_value plan_templates(std::span<seconds const> layer_costs, size_range sizes);

}  // namespace rheo::inline v0
