#pragma once
// SPDX-License-Identifier: Apache-2.0

// What every rank keeps in order to replan after a change of the membership, and how groups of ranks that share stages are rebuilt.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rheo/model/grid.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"
#include "rheo/pipeline/repair_groups.hpp"
#include "rheo/plan/cells.hpp"
#include "rheo/plan/keepers.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/job_templates.hpp"
#include "rheo/planner/make_plan_on.hpp"
#include "rheo/planner/plan_error.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/planner/recompute_choice.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

namespace detail {

/// New pipelines of groups for these ranks: the best of all degrees up to the request's. If there are too few ranks on a node for a group, groups are
/// smaller.
template <class OnlyWhenCalled = void>
result<recomposition> new_groups(model_description const& model, planning_request request, std::vector<rank_id> const& ranks)
{
    if (ranks.empty()) {
        return failure{"no rank stays"};
    }
    request.pipelines.clear();
    request.layers.clear();
    request.shares.clear();
    request.spares = 0;
    result<initial_plan> best = failure{"none"};
    for (auto degree = std::min(request.tensor.largest(), static_cast<int>(ranks.size())); degree >= 1; --degree) {
        request.tensor.values = {degree};
        auto made = make_initial_plan(model, request, ranks, limit_refusal::limit_only);
        if (made) {
            made->time = time_of_step(made->plan, model, request);
        }
        if (made && best ? made->degraded < best->degraded || (made->degraded == best->degraded && made->time < best->time) : made || !best) {
            best = std::move(made);
        }
    }
    if (!best) {
        return failure{best.error()};
    }
    auto next = recomposition_of(best->plan);
    next.degraded = best->degraded;
    return next;
}

/// The plan with these pipelines and shares.
template <class OnlyWhenCalled = void>
plan plan_of(std::vector<pipeline_instance> pipelines, std::vector<int> const& shares, model_description const& model, planning_request const& request)
{
    plan p{.schedule = request.schedule,
           .pipelines = std::move(pipelines),
           .work = deal(shares),
           .spares = {},
           .recompute = {.every_stage = request.recompute == recompute_policy::always},
           .slices = request.microbatch.slices,
           .optimizer = optimizer_shards_of(request)};
    choose_recomputation(p, model, request);
    return p;
}

/// Whether a pipeline of groups fits the memory limit if it runs all microbatches.
template <class OnlyWhenCalled = void>
bool fits_alone(pipeline_instance const& pipeline, model_description const& model, planning_request const& request)
{
    auto const alone = plan_of({pipeline}, {request.microbatches}, model, request);
    return memory_error(alone, model, request, ranks_of(alone).back().value + 1, kept_moments(request)).empty();
}

/// The function that repairs pipelines of groups, or makes new ones if none can be kept, or if only new ones are f + 1. Empty if no ranks share a stage.
template <class OnlyWhenCalled = void>
decltype(replanning::regroup) regrouping(model_description const& model, planning_request const& request)
{
    if (request.tensor.is_one()) {
        return {};
    }
    return [model, request](array_view<pipeline_instance const> before, std::vector<rank_id> const& staying) {
        auto const fits = [&](pipeline_instance const& pipeline) { return fits_alone(pipeline, model, request); };
        auto next = repair_groups(before, staying, {request.microbatches, request.failures, request.node_size}, fits);
        if (!next || next->degraded) {
            auto made = new_groups(model, request, staying);
            if (!next || (made && !made->degraded)) {
                next = std::move(made);
            }
        }
        if (next) {
            next->time = time_of_step(plan_of(next->pipelines, next->shares, model, request), model, request);
        }
        return next;
    };
}

}  // namespace detail

/// The nodes and spares that the request asks for.
constexpr membership_rules membership_rules_of(planning_request const& request) { return {.node_size = request.node_size, .reserved_spares = request.spares}; }

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
        state = with_moment_cells(state, grid);
    } else if (grid > 1) {
        state = by_cells(std::move(state), grid);
    }
    return {.state = std::move(state),
            .layers = static_cast<int>(model.layers.size()) * cells,
            .ready = ready_templates(model, request, ranks, request.memory_limit),
            .wanted = {.failures = request.failures,
                       .microbatches = request.microbatches,
                       .losses = {.mtbf = request.mtbf, .copy_rate = request.machine.between_nodes.bandwidth}},
            .formats = committed_formats_of(request.policy),
            .round_budget = mebibytes(256),
            .slices = request.microbatch.slices,
            .cells_per_layer = cells,
            .optimizer = {optimizer, elements},
            .regroup = detail::regrouping(model, request)};
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template replanning make_replanning<>(model_description const&, planning_request const&, int);
#endif

}  // namespace rheo::inline v0
