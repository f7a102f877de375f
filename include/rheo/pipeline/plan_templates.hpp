#pragma once
// SPDX-License-Identifier: Apache-2.0

// Templates made at run time, or by the compiler from constexpr costs: for every size of a range the
// exactly optimal cuts.

#include <algorithm>

#include "rheo/partition/optimal.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct size_range {
    int from;
    int to;  ///< inclusive

    friend constexpr bool operator==(size_range, size_range) = default;
};

/// One template for each size of the range that the model has layers for and the rule allows: cuts that
/// minimise the slowest stage, ties to the lexicographically smallest.
/// @param layer_times forward and backward time per microbatch of each layer
/// @param allows refuses stages, for instance those without enough memory (stage_memory_limit)
/// @pre 1 <= from <= to, there is a layer, no time is negative
/// @return possibly no template: then nothing of these sizes is allowed. Cost: O(to x layers^2).
template <class Rule = any_stage>
constexpr template_set_value plan_templates(array_view<seconds const> layer_times, size_range sizes, Rule const& allows = {})
{
    expects(1 <= sizes.from && sizes.from <= sizes.to, "template sizes must be a range from at least 1");
    auto const largest = std::min(sizes.to, static_cast<int>(layer_times.size()));
    template_set_value ready;
    if (largest < sizes.from) {
        return ready;
    }
    auto const all = optimal_cuts_up_to(layer_times, largest, allows);
    for (int n = sizes.from; n <= largest; ++n) {
        auto const& bounds = all[static_cast<std::size_t>(n) - 1];
        if (!bounds.empty()) {
            ready.templates.push_back(make_template(bounds, layer_times));
        }
    }
    return ready;
}

}  // namespace rheo::inline v0
