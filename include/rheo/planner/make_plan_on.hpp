#pragma once
// SPDX-License-Identifier: Apache-2.0

// Plans for the ranks that a job still has, whose numbers have gaps.

#include <algorithm>
#include <utility>

#include "rheo/model/grid.hpp"
#include "rheo/model/model.hpp"
#include "rheo/pipeline/recomposition.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/make_plan.hpp"
#include "rheo/planner/plan_error.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// The plan with each rank replaced.
template <class NewRank>
plan with_ranks(plan p, NewRank const& new_rank)
{
    for (auto& pipeline : p.pipelines) {
        for (auto& stage : pipeline.stages) {
            std::transform(stage.begin(), stage.end(), stage.begin(), new_rank);
        }
    }
    std::transform(p.spares.begin(), p.spares.end(), p.spares.begin(), new_rank);
    return p;
}

/// Makes a plan for these ranks. Each group lies in one of their nodes. @param ranks ascending
template <class OnlyWhenCalled = void>
result<plan> make_plan_on(model_description const& model, planning_request const& request, array_view<rank_id const> ranks)
{
    auto made = make_initial_plan(model, request, ranks);
    return made ? result<plan>{std::move(made->plan)} : failure{made.error()};
}

/// The pipelines of a plan with their shares of a step.
template <class OnlyWhenCalled = void>
recomposition recomposition_of(plan const& p)
{
    recomposition chosen;
    chosen.pipelines = p.pipelines;
    chosen.spares = p.spares;
    for (auto const& work : p.work) {
        chosen.shares.push_back(static_cast<int>(work.size()));
    }
    return chosen;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template result<plan> make_plan_on<>(model_description const&, planning_request const&, array_view<rank_id const>);
#endif

}  // namespace rheo::inline v0
