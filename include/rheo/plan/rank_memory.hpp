#pragma once
// SPDX-License-Identifier: Apache-2.0

// The memory of a rank under a plan: the one place that goes from plan and rank to the parts (plan/memory_parts.hpp), for planning, reports and runs.

#include <algorithm>

#include "rheo/model/grid.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/parameter_bytes.hpp"
#include "rheo/model/state.hpp"
#include "rheo/partition/cuts.hpp"
#include "rheo/plan/keepers.hpp"
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

/// What optimizer shards change in a rank's memory.
struct optimizer_memory {
    bytes unkept_moments{};  ///< of its layers
    bytes unkept_master{};
    bytes workspace{};  ///< in which it computes new parameters for ranks that do not keep them: what it sends, and the largest tensor's values

    constexpr bytes unkept() const { return unkept_moments + unkept_master; }
};

/// @param policy of the job  Cost: ranks x uses
template <class OnlyWhenCalled = void>
optimizer_memory optimizer_memory_of(plan const& p, model_description const& model, dtype_policy const& policy, rank_id rank)
{
    optimizer_memory memory;
    if (!p.optimizer.are_used()) {
        return memory;
    }
    auto const state = state_of(model);
    auto const holders = holders_by_tensor(array_view{p.pipelines}, state, grid_of(model));
    auto const keepers = keepers_by_tensor(array_view{p.pipelines}, state, grid_of(model), p.optimizer);
    bool const apart = policy.stores_apart();
    bytes largest;
    for (tensor_id t{0}; at(t) < state.tensors.size(); ++t) {
        auto const& all = holders[at(t)];
        auto const& some = keepers[at(t)];
        if (!state.tensors[at(t)].is_parameter || some.size() == all.size() || !std::binary_search(all.begin(), all.end(), rank)) {
            continue;
        }
        auto const parts = parameter_bytes_of(state.tensors[at(t)].shape, policy);
        if (!std::binary_search(some.begin(), some.end(), rank)) {
            memory.unkept_moments += parts.moments;
            memory.unkept_master += apart ? parts.master : bytes{};
        } else if (sender_of(some, t) == rank) {
            memory.workspace += apart ? parts.stored : parts.master;
            largest = std::max(largest, parts.moments + parts.stored + (apart ? parts.master : bytes{}));
        }
    }
    memory.workspace += largest;
    return memory;
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
    auto parts = parts_at(model, pipeline, run, place.position, memory_terms_of(p, shape, policy), recompute_levels_at(p, place), place.member);
    auto const optimizer = optimizer_memory_of(p, model, policy, rank);
    parts.state.moments -= optimizer.unkept_moments;
    parts.state.master -= optimizer.unkept_master;
    parts.workspace += optimizer.workspace;
    return parts;
}

}  // namespace rheo::inline v0
