#pragma once
// SPDX-License-Identifier: Apache-2.0

// The memory of a rank under a plan: the one place that goes from plan and rank to the parts (plan/memory_parts.hpp), for planning, reports and runs.

#include "rheo/model/model.hpp"
#include "rheo/partition/cuts.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/plan/pipeline_schedule.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/schedule/transform/recomputation.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/tensor/shape.hpp"

namespace rheo::inline v0 {

/// What the memory of the plan's ranks depends on besides plan and model. A pipeline with two copies of the model counts twice: each of them has a holder
/// of every layer, and their sums are joined.
constexpr memory_terms memory_terms_of(plan const& p, microbatch_shape shape, dtype_policy const& policy)
{
    int holders = 0;
    for (auto const& pipeline : p.pipelines) {
        holders += static_cast<int>(pipeline.stages.size()) / stage_count(pipeline.cuts);
    }
    return terms_of_ranks(shape, policy, holders);
}

/// What a rank needs, part by part; nothing for a spare. @pre the plan's schedule is known, its cuts are the model's
template <class OnlyWhenCalled = void>
memory_parts memory_parts_of(plan const& p, model_description const& model, microbatch_shape shape, dtype_policy const& policy, rank_id rank)
{
    auto const place = position_of(p, rank);
    if (!place.found) {
        return {};
    }
    auto const& pipeline = p.pipelines[at(place.pipeline)];
    auto const compute = schedule_of(p, at(place.pipeline)).compute;
    auto const run = recomputes_stages(p) ? with_recomputation(compute, recomputed_stages(p, at(place.pipeline))) : compute;
    return parts_at(model, pipeline, run, place.position, memory_terms_of(p, shape, policy), recompute_levels_at(p, place), place.member);
}

}  // namespace rheo::inline v0
