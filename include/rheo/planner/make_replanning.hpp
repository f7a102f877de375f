#pragma once
// SPDX-License-Identifier: Apache-2.0

// What every rank keeps in order to replan after a change of the membership.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rheo/model/grid.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"
#include "rheo/plan/cells.hpp"
#include "rheo/plan/keepers.hpp"
#include "rheo/planner/group_planner.hpp"
#include "rheo/planner/job_templates.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/recover/membership_plan.hpp"

namespace rheo::inline v0 {

/// What every rank keeps in order to replan after a loss, in cells on a grid of several shards or with optimizer shards. @param ranks at launch
template <class OnlyWhenCalled = void>
replanning make_replanning(model_description const& model, planning_request const& request, int ranks)
{
    auto const grid = grid_of(model);
    auto const optimizer = optimizer_shards_of(request);
    auto const cells = optimizer.are_used() ? 2 * grid : grid;
    auto state = state_of(model);
    auto const elements = optimizer.are_used() ? elements_of_cells(state, grid) : std::vector<std::int64_t>{};
    if (optimizer.are_used()) {
        state = with_moment_cells(state, grid, request.policy.stores_apart());
    } else if (grid > 1) {
        state = by_cells(std::move(state), grid);
    }
    replanning known{.state = std::move(state),
                     .layers = static_cast<int>(model.layers.size()) * cells,
                     .ready = request.tensor.is_one() ? ready_templates(model, request, ranks, request.memory_limit) : template_set_value{},
                     .wanted = {.failures = request.failures,
                                .microbatches = request.microbatches,
                                .losses = {.mtbf = request.mtbf, .copy_rate = request.machine.between_nodes.bandwidth}},
                     .formats = committed_formats_of(request.policy),
                     .round_budget = mebibytes(256),
                     .slices = request.microbatch.slices,
                     .cells_per_layer = cells,
                     .optimizer = {optimizer, elements}};
    if (!request.tensor.is_one()) {
        known.regroup = [planner = std::make_shared<group_planner<>>(model, request, known, ranks)](auto const&... members) { return (*planner)(members...); };
    }
    return known;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template replanning make_replanning<>(model_description const&, planning_request const&, int);
#endif

}  // namespace rheo::inline v0
