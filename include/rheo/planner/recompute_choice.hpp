#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which stages or layers of a plan recompute activations, so that its ranks keep within the memory limit.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/model/model.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/plan/memory_plan.hpp"
#include "rheo/plan/pipeline_schedule.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/plan/rank_memory.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/schedule/transform/recomputation.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Of what optimizer shards divide, the least that a rank of the group leaves to others.
template <class OnlyWhenCalled = void>
bytes least_unkept(plan const& p, model_description const& model, planning_request const& request, std::vector<rank_id> const& group)
{
    auto least = optimizer_memory_of(p, model, request.policy, group.front()).unkept();
    for (auto const rank : group) {
        least = std::min(least, optimizer_memory_of(p, model, request.policy, rank).unkept());
    }
    return least;
}

/// What each rank's layers drop, so that it keeps within the limit.
template <class OnlyWhenCalled = void>
void choose_layers(plan& p, model_description const& model, planning_request const& request, bytes limit)
{
    p.recompute = {};
    auto& levels = p.recompute.levels;
    bool some = false;
    auto const terms = memory_terms_of(p, request.microbatch, request.policy);
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const compute = schedule_of(p, i).compute;
        auto const groups = groups_of(p.pipelines[i]);
        levels.emplace_back();
        for (int position = 0; position < static_cast<int>(compute.rows.size()); ++position) {
            auto const workspace = rank_flow_at(model, p.pipelines[i], compute, position, terms).workspace;  // comes on top of the limit
            auto const unkept = least_unkept(p, model, request, groups[static_cast<std::size_t>(position)]);
            auto const chosen = plan_memory(model, p.pipelines[i], compute, position, terms, limit + workspace + unkept);
            levels.back().push_back(chosen.recompute_levels);
            some = some || layers_at_level(chosen, recompute_level::none) < static_cast<int>(chosen.recompute_levels.size());
        }
    }
    if (!some) {
        levels.clear();
    }
}

/// On each rank over the limit the stages that free most, until it fits; all that free something where it never does.
template <class OnlyWhenCalled = void>
void choose_stages(plan& p, model_description const& model, planning_request const& request, bytes limit)
{
    p.recompute = {};
    std::vector<std::vector<bool>> stages;
    bool some = false;
    auto const terms = memory_terms_of(p, request.microbatch, request.policy);
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        std::vector<bytes> caps;
        auto const groups = groups_of(p.pipelines[i]);
        for (std::size_t position = 0; position < groups.size(); ++position) {
            auto const group = group_at(p.pipelines[i], static_cast<int>(position), grid_of(model));
            auto const state = total(state_parts(model, layers_of(p, groups[position].front()), terms, group));
            caps.push_back(limit - state + least_unkept(p, model, request, groups[position]));
        }
        stages.push_back(recomputation_under(schedule_of(p, i).compute, held_by_stages(model, p.pipelines[i], terms), caps).stages);
        for (bool const marked : stages.back()) {
            some = some || marked;
        }
    }
    if (some) {
        p.recompute.stages = std::move(stages);
    }
}

}  // namespace detail

/// Marks what the plan recomputes, where the request leaves the choice to the planner (automatic, selective).
template <class OnlyWhenCalled = void>
void choose_recomputation(plan& p, model_description const& model, planning_request const& request)
{
    if (!request.memory_limit) {
        return;
    }
    if (request.recompute == recompute_policy::selective) {
        detail::choose_layers(p, model, request, *request.memory_limit);
    } else if (request.recompute == recompute_policy::automatic) {
        detail::choose_stages(p, model, request, *request.memory_limit);
    }
}

}  // namespace rheo::inline v0
