#pragma once
// SPDX-License-Identifier: Apache-2.0

// What ranks hold once a plan is in force.

#include <vector>

#include "rheo/plan/cells.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// The layers of each rank in the order of `ranks`, or its cells on a grid of several shards. A rank without a place holds none.
template <class OnlyWhenCalled = void>
std::vector<rank_holdings> holdings_under(plan const& p, array_view<rank_id const> ranks, int cells_per_layer)
{
    std::vector<rank_holdings> holdings;
    for (auto const rank : ranks) {
        holdings.push_back({rank, {}, {}, {}});
        if (auto const place = position_of(p, rank); place.found) {
            holdings.back().layers = cells_of(p.pipelines[at(place.pipeline)], rank, cells_per_layer);
        }
    }
    return holdings;
}

}  // namespace rheo::inline v0
