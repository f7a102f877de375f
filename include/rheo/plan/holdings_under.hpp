#pragma once
// SPDX-License-Identifier: Apache-2.0

// What ranks hold once a plan is in force.

#include <cstddef>
#include <utility>
#include <vector>

#include "rheo/plan/keepers.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// The layers of each rank in the order of `ranks`, or its cells. A rank without a place holds none.
template <class OnlyWhenCalled = void>
std::vector<rank_holdings> holdings_under(plan const& p, array_view<rank_id const> ranks, int cells_per_layer, optimizer_cells const& optimizer = {})
{
    std::vector<rank_holdings> holdings;
    for (auto const rank : ranks) {
        holdings.push_back({rank, {}, {}, {}});
    }
    auto cells = cells_by_rank(p.pipelines, ranks, cells_per_layer, optimizer);
    for (std::size_t r = 0; r < holdings.size(); ++r) {
        holdings[r].layers = std::move(cells[r]);
    }
    return holdings;
}

}  // namespace rheo::inline v0
